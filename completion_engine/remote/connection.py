"""HTTP/2 to one server: concurrent streams on one connection. Each stream can be reset.

Owns frames and flow control, by the h2 library. Does not depend on the meaning of requests. Used on one
thread: a read of one stream also takes in the data of the others. The server is hostile: all that it can send
without end is counted.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import H2Error, NoAvailableStreamIDError, TooManyStreamsError
from h2.settings import SettingCodes, Settings

from completion_engine.errors import RemoteError
from completion_engine.remote.frame_bounds import MAX_FRAME_BYTES, FrameBounds, FrameError
from completion_engine.remote.socket_transport import Transport, Wait, silent
from completion_engine.remote.stream import Stream

WINDOW_BYTES = 256 << 10
MAX_BODY_BYTES = 4 << 20
MAX_HEADER_BYTES = 16 << 10
# A server that sends this many frames without data is not trusted. Each useful frame and each request makes
# up for some: acknowledgements, windows and frames to a stream that was reset carry no data.
MAX_EMPTY_FRAMES = 1000
_USEFUL_PAYS, _REQUEST_PAYS = 10, 100
SEND_S = 10.0
_LOOK_S = 0.005  # the time for frames that have arrived; more frames wait for the next read
_IDLE_S = 20.0  # a connection that was quiet for longer gets a ping
_PROVE_S = 1.0  # and is given up if the answer takes longer

_SETTINGS = {
    SettingCodes.ENABLE_PUSH: 0,
    SettingCodes.INITIAL_WINDOW_SIZE: WINDOW_BYTES,
    SettingCodes.MAX_FRAME_SIZE: MAX_FRAME_BYTES,
    SettingCodes.MAX_HEADER_LIST_SIZE: MAX_HEADER_BYTES,
    SettingCodes.MAX_CONCURRENT_STREAMS: 0,
}


class Connection:
    """Streams over an open transport. New ones can begin while it `is_usable`."""

    def __init__(self, transport: Transport, authority: str, scheme: str) -> None:
        """Send the preface over an open transport."""
        self._transport, self._authority, self._scheme = transport, authority, scheme
        # Headers may hold any bytes, and proxies write some that are not UTF-8.
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding="latin-1"))
        self._h2.local_settings = Settings(client=True, initial_values=_SETTINGS)
        self._h2.decoder.max_header_list_size = MAX_HEADER_BYTES
        self._bounds = FrameBounds()
        self._streams: dict[int, Stream] = {}
        self._num_empty = 0
        self._is_leaving = False
        self._heard_s = time.perf_counter()
        self._asked_s = 0.0
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(4 * WINDOW_BYTES)
        self._flush()

    @property
    def is_usable(self) -> bool:
        """Whether a stream can begin: the transport is open, and the server has not sent GOAWAY."""
        return self._transport.is_open and not self._is_leaving

    @property
    def num_streams(self) -> int:
        """Number of open streams."""
        return len(self._streams)

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes, wait: Wait) -> Stream:
        """Begin a stream and send all of the request. Raises RemoteError, CancelledError."""
        self._prove_if_quiet()
        self._count_empty(-_REQUEST_PAYS)
        pseudo = [
            (":method", method), (":scheme", self._scheme), (":authority", self._authority), (":path", path)
        ]  # fmt: skip
        with self._faults():
            number = self._h2.get_next_available_stream_id()
            self._h2.send_headers(number, [*pseudo, *headers.items()], end_stream=not body)
            stream = self._streams[number] = Stream(self, number)
            try:
                self._send_body(stream, body, wait)
            except BaseException:
                self.reset(stream)
                raise
        return stream

    def pump(self, wait: Wait) -> bool:
        """Read what arrives, for any stream; return False when time is up. Raises RemoteError."""
        data = self._transport.receive(self._proving(wait))
        if data is None:
            if not wait.is_over:
                self._lost(RemoteError("truncated", f"The connection to {self._authority} is dead."))
                return True
            return False
        self._heard_s, self._asked_s = time.perf_counter(), 0.0
        with self._faults():
            if not data:
                self._lost(RemoteError("truncated", f"{self._authority} closed the connection."))
                return True
            num_bytes, num_frames = self._bounds.check(data)
            num_useful = sum(map(self._take, self._h2.receive_data(data[:num_bytes])))
            self._count_empty(num_frames - _USEFUL_PAYS * num_useful)
            if self._transport.is_open:
                self._flush()
        return True

    def look(self) -> None:
        """Read what has arrived already, for a few milliseconds at most."""
        moment = Wait.seconds(_LOOK_S)
        with contextlib.suppress(RemoteError):
            while self.is_usable and self.pump(Wait(0.0)) and not moment.is_over:
                pass

    def consumed(self, stream: Stream, num_window: int) -> None:
        """Give the server back the window that a reader has consumed."""
        if num_window and self._transport.is_open:
            with self._faults():
                self._h2.acknowledge_received_data(num_window, stream.number)
                self._flush()

    def reset(self, stream: Stream) -> None:
        """See `Stream.reset`. The window of unread data is given back, also for a stream that has ended."""
        is_under_way = self._streams.pop(stream.number, None) is not None
        with contextlib.suppress(RemoteError):
            self.consumed(stream, stream.drop())
            if is_under_way and self._transport.is_open:
                with self._faults():
                    self._h2.reset_stream(stream.number, ErrorCodes.CANCEL)
                    self._flush()

    def close(self) -> None:
        """Send GOAWAY and close the transport."""
        if self._transport.is_open:
            with contextlib.suppress(RemoteError, H2Error):
                self._h2.close_connection()
                self._transport.send(self._h2.data_to_send(), Wait(0.0))
        self._transport.close()
        self._lost(RemoteError("truncated", f"The connection to {self._authority} was closed."))

    def _send_body(self, stream: Stream, body: bytes, wait: Wait) -> None:
        """Send as much at a time as the server allows; it may answer before it has the whole body."""
        self._flush()
        patient = wait.at_most(time.perf_counter() + SEND_S)
        view = memoryview(body)
        while view and not stream.has_answered:
            wait.check()
            room = min(self._h2.local_flow_control_window(stream.number), self._h2.max_outbound_frame_size)
            if room <= 0:
                if not self.pump(patient):
                    raise silent(self._authority)
                continue
            part, view = view[:room], view[room:]
            self._h2.send_data(stream.number, part.tobytes(), end_stream=not view)
            self._flush()

    def _take(self, event: events.Event) -> bool:
        """Handle an event; return whether it carries data for a stream."""
        stream = self._streams.get(getattr(event, "stream_id", None) or 0)
        if isinstance(event, events.DataReceived):
            return self._take_data(stream, event)
        if isinstance(event, events.ConnectionTerminated):
            # The library reads nothing after GOAWAY, so no open answer can be completed.
            self._lost(RemoteError("truncated", f"{self._authority} is going away."))
        elif stream is None:
            return False
        elif isinstance(event, events.ResponseReceived):
            stream.headers = dict(event.headers or ())  # type: ignore[arg-type]  # decoded, as configured
            stream.status = _status(stream.headers.get(":status", ""))
            return True
        elif isinstance(event, events.StreamEnded):
            stream.has_ended = True
            del self._streams[stream.number]
        elif isinstance(event, events.StreamReset):
            stream.fault = RemoteError("truncated", f"{self._authority} stopped in the middle of an answer.")
            del self._streams[stream.number]
        return False

    def _take_data(self, stream: Stream | None, event: events.DataReceived) -> bool:
        data, num_window = event.data or b"", event.flow_controlled_length or 0
        if stream is None or not data:
            self._h2.acknowledge_received_data(num_window, event.stream_id or 0)
            return False
        stream.chunks.append((data, num_window))
        stream.num_bytes += len(data)
        if stream.num_bytes > MAX_BODY_BYTES:
            stream.fault = _rubbish(self._authority, "it does not end")
            self.reset(stream)
        return True

    def _count_empty(self, num_frames: int) -> None:
        """Count more frames without data, or less."""
        self._num_empty = max(0, self._num_empty + num_frames)
        if self._num_empty > MAX_EMPTY_FRAMES:
            raise _rubbish(self._authority, "it has too many empty frames")

    def _lost(self, fault: RemoteError) -> None:
        """Close the transport, and end all streams with `fault`."""
        self._transport.is_open = False
        for stream in self._streams.values():
            stream.fault = stream.fault or fault
        self._streams.clear()

    def _prove_if_quiet(self) -> None:
        """Ping a connection that was quiet for long."""
        now_s = time.perf_counter()
        if now_s - self._heard_s > _IDLE_S and not self._asked_s:
            with self._faults():
                self._h2.ping(b"standing")
                self._asked_s = now_s

    def _proving(self, wait: Wait) -> Wait:
        """Return `wait`, shortened to the time that the answer to a ping may take."""
        if not self._asked_s:
            return wait
        return wait.at_most(self._asked_s + _PROVE_S)

    def _flush(self) -> None:
        """Send what is queued, for at most `SEND_S`, whatever the reader's patience."""
        if data := self._h2.data_to_send():
            self._transport.send(data, Wait.seconds(SEND_S))

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        """End all streams after a fault of the connection."""
        try:
            yield
        except TooManyStreamsError as error:
            raise RemoteError("busy", f"{self._authority} accepts no further requests.") from error
        except NoAvailableStreamIDError as error:
            self._is_leaving = True
            raise RemoteError(
                "truncated", f"The connection to {self._authority} has no further streams."
            ) from error
        except (H2Error, FrameError) as error:
            fault = _rubbish(self._authority, str(error) or type(error).__name__)
            self._lost(fault)
            raise fault from error
        except RemoteError as fault:
            if not self._transport.is_open or fault.kind == "rubbish":
                self._lost(fault)
            raise


def _status(text: str) -> int:
    return int(text) if len(text) == 3 and text.isascii() and text.isdigit() else 599


def _rubbish(authority: str, what: str) -> RemoteError:
    return RemoteError(
        "rubbish",
        f"{authority} sent an answer that is not valid HTTP/2: {what[:200]}.",
        advice="Check the setting remote.url, or ask the administrator of the servers.",
    )
