"""`slipstream/stats`: how the server does."""

from __future__ import annotations

from typing import Any

from lsp_server.protocol import lsp_conversion
from lsp_server.protocol.reasons import texts
from lsp_server.protocol.server import SlipstreamServer


async def stats(server: SlipstreamServer, _params: Any) -> dict[str, Any]:
    """The engine's state, counters, latencies, the state of each folder's index, and the usage by day."""
    usage = await server.usage.summaries() if server.usage else None
    return {
        **lsp_conversion.engine_state(server.scheduler.status),
        **server.session.measurements.as_dict(),
        "texts": texts(server.session.measurements.rules),
        "usage": usage,
        "num_documents": len(server.session.documents),
        "index": [lsp_conversion.index_state(report) for report in server.indexes.reports()],
    }
