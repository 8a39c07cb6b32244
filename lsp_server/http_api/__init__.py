"""A loopback HTTP server for plugins that speak to llama-server, an OpenAI-like server or Ollama.

It is a client of the language server, and has no access to engines or settings.
"""
