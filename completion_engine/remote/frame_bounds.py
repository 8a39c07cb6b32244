"""The lengths that HTTP/2 frames give themselves, looked at before any of a frame is kept.

Bytes in; out come how many of them count and how many frames they begin, or an error. The h2 library keeps
all of a frame before it says that it is too long.
"""

from __future__ import annotations

MAX_FRAME_BYTES = 16 << 10
_HEADER_BYTES = 9  # three of the length, then type, flags and stream
_SETTINGS_TYPE, _GOAWAY_TYPE = 4, 7


class FrameError(ValueError):
    """What came is no frame, or a longer one than was agreed upon."""


class FrameBounds:
    """Follows the bytes of one connection. The first frame tells the other side's settings."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._num_left = 0
        self._has_begun = self._is_goodbye = False

    def check(self, data: bytes) -> tuple[int, int]:
        """How many of the bytes count, as none do behind a goodbye, and how many frames begin in them.

        Raises FrameError at the first header that cannot be.
        """
        at = num_frames = 0
        while at < len(data) and (self._num_left or not self._is_goodbye):
            if self._num_left:
                num_skipped = min(self._num_left, len(data) - at)
                self._num_left -= num_skipped
                at += num_skipped
                continue
            part = data[at : at + _HEADER_BYTES - len(self._header)]
            self._header += part
            at += len(part)
            if len(self._header) == _HEADER_BYTES:
                self._take_header()
                num_frames += 1
        return at, num_frames

    def _take_header(self) -> None:
        num_bytes, kind = int.from_bytes(self._header[:3], "big"), self._header[3]
        self._header.clear()
        if num_bytes > MAX_FRAME_BYTES or (not self._has_begun and kind != _SETTINGS_TYPE):
            raise FrameError("bytes that are no frames")
        self._has_begun, self._num_left, self._is_goodbye = True, num_bytes, kind == _GOAWAY_TYPE
