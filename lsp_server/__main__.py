"""`python -m lsp_server` is the language server on standard input and output."""

from lsp_server.app import serve_stdio

if __name__ == "__main__":
    serve_stdio()
