"""The language server: protocol, documents, scheduling and the command line."""
