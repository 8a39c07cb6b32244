"""Hostile bytes where a framed message should be. The oracle: frames, or one FrameError, and an end.

Owns what such bytes look like.
"""

from __future__ import annotations

import io
import random

from lsp_server.protocol.client_streams import FrameError, read_frame

_PIECES = (
    b"Content-Length: ", b"content-length:", b"Content-Type: x\r\n", b"\r\n", b"\r\n\r\n", b"\n", b"{}",
    b"2", b"0",
    b"-1", b"99999999999999999999", b"1e9", b"\x00", b"\xff\xfe", b":", b"{\"jsonrpc\":\"2.0\"}", b"17", b" ",
)  # fmt: skip


def check(rng: random.Random) -> None:
    """One stream of parts: whole frames, cut frames, and frames with one changed byte."""
    data = bytearray()
    for _ in range(rng.randrange(1, 12)):
        if rng.random() < 0.4:
            body = rng.randbytes(rng.randrange(40))
            data += b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        else:
            data += rng.choice(_PIECES)
    if data and rng.random() < 0.5:
        data[rng.randrange(len(data))] = rng.randrange(256)
    stream = io.BytesIO(bytes(data))
    num_frames = 0
    try:
        while read_frame(stream) is not None:
            num_frames += 1
            assert num_frames <= len(data)
    except FrameError as error:
        assert len(str(error)) < 200
