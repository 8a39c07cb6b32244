"""A loopback HTTP server for plugins that speak to llama-server, an OpenAI-like server or Ollama.

Owns HTTP and the form of three kinds of requests. It is a client of the language server, so it has no access
to engines or settings.
"""
