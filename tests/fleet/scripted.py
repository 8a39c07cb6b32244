"""A replica that writes what a test wants, in vLLM's words, over HTTP/1.1 as vLLM speaks it.

Owns one listener on the loopback and what it saw. Every request has a thread.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ScriptedReplica:
    """Answers each completion with `tokens`; without `goes_on` with one, and waits to be left."""

    tokens: tuple[int, ...] = (5, 6, 7)
    goes_on: bool = True
    sessions: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    was_left: threading.Event = field(default_factory=threading.Event)
    port: int = 0


@contextmanager
def serving(replica: ScriptedReplica) -> Iterator[ScriptedReplica]:
    """Listens within the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._whole({"data": [{"id": "target", "max_model_len": 4096}]})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            replica.headers.append(dict(self.headers))
            replica.sessions.append(self.headers.get("x-session-id", ""))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            self._event(_chunk(replica.tokens[:1]))
            if not replica.goes_on:
                with suppress(OSError):
                    while self.connection.recv(1024):
                        pass
                replica.was_left.set()
                self.close_connection = True
                return
            self._event(_chunk(replica.tokens[1:], "stop"))
            self._event("[DONE]")
            self.wfile.write(b"0\r\n\r\n")

        def _event(self, text: str) -> None:
            data = f"data: {text}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

        def _whole(self, value: dict[str, Any]) -> None:
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def handle(self) -> None:
            with suppress(OSError):  # a check that has seen enough resets its connection
                super().handle()

        def log_message(self, *_: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128  # the usual 5 is too short for many streams at once

    server = Server(("127.0.0.1", 0), Handler)
    replica.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield replica
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _chunk(tokens: tuple[int, ...], reason: str | None = None) -> str:
    choice = {"index": 0, "text": "x" * len(tokens), "token_ids": list(tokens), "finish_reason": reason}
    return json.dumps({"choices": [choice]})
