"""The language server protocol: bytes, frames, and what the server knows in its words."""
