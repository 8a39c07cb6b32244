"""One protocol method or family per module, and the one table that routes to them."""

from lsp_server.handlers.routes import register

__all__ = ["register"]
