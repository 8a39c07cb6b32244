"""What runs from the command line: commands, measurements, replay. Nothing of it runs in the server."""
