"""The state of an engine says why a GPU is not used, and nothing where nothing is wrong."""

from __future__ import annotations

import pytest

from lsp_server.engine.engine_types import ready_status


@pytest.mark.parametrize(
    ("details", "message"),
    [
        ({}, ""),
        ({"backend": "GPU kernels", "backend_reason": ""}, ""),
        (
            {"backend": "CPU", "backend_reason": "The card is full."},
            "Ready. The model runs on the CPU. The card is full.",
        ),
        (
            {"backend": "GPU torch", "backend_reason": "Triton is not installed."},
            "Ready. The model runs on the GPU through plain torch. Triton is not installed.",
        ),
    ],
)
def test_a_ready_engine_says_why_it_does_not_run_on_a_faster_backend(
    details: dict[str, str], message: str
) -> None:
    assert ready_status(details).message == message
