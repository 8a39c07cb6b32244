"""Checks the lengths in the headers of HTTP/2 frames before a frame is stored.

The h2 library stores a whole frame before it rejects its length.
"""

from __future__ import annotations

MAX_FRAME_BYTES = 16 << 10
_HEADER_BYTES = 9  # three for the length, then type, flags and stream
_SETTINGS_TYPE, _GOAWAY_TYPE = 4, 7


class FrameError(ValueError):
    """The bytes are not a frame, or a longer one than was agreed upon."""


class FrameBounds:
    """Follows the bytes of one connection, whose first frame holds the other side's settings."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._num_left = 0
        self._has_begun = self._is_goodbye = False

    def check(self, data: bytes) -> tuple[int, int]:
        """Return the number of bytes up to the end of a GOAWAY, and the number of frames that begin in them.

        Raises FrameError at the first invalid header.
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
            raise FrameError("it has bytes that are not frames")
        self._has_begun, self._num_left, self._is_goodbye = True, num_bytes, kind == _GOAWAY_TYPE
