"""The target on a team's servers: the connection, the streamed answer, and a completer on these."""
