"""A loopback HTTP server for plugins that speak to llama-server, an OpenAI-like server or Ollama.

Owns HTTP and the form of these requests. It is a client of the language server, with no access to engines.
"""
