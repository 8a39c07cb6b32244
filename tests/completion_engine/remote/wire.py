"""A transport without a network: h2's server side at its other end, and whatever bytes a test puts in."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes, Settings

from completion_engine.remote.connection import Connection
from completion_engine.remote.socket_transport import Wait

Answer = Callable[[H2Connection, int], None]
NOW = Wait(0.0)  # what is here already


class Wire:
    """Satisfies `Transport`. `answer` is given the server side and the number of a stream that has begun."""

    def __init__(
        self, answer: Answer | None = None, *, settings: dict[SettingCodes, int] | None = None
    ) -> None:
        self.answer = answer
        self.is_open = True
        self.num_received = 0
        self.heard: list[events.Event] = []
        self.coming: deque[bytes] = deque()
        self.server = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.server.local_settings = Settings(client=False, initial_values=settings or {})
        self.server.initiate_connection()
        self.flush()

    def connection(self) -> Connection:
        """With both sides' settings known."""
        made = Connection(self, "localhost:1", "http")
        made.look()
        return made

    def flush(self) -> None:
        """Send the server's data as one chunk."""
        if data := self.server.data_to_send():
            self.coming.append(data)

    def send(self, data: bytes, wait: Wait) -> None:
        for event in self.server.receive_data(data):
            self.heard.append(event)
            if isinstance(event, events.RequestReceived) and self.answer is not None:
                self.answer(self.server, event.stream_id)
        self.flush()

    def receive(self, wait: Wait) -> bytes | None:
        wait.check()
        if not self.coming:
            return None
        self.num_received += 1
        return self.coming.popleft()

    def close(self) -> None:
        self.is_open = False
