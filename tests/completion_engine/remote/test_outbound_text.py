"""Text that leaves a position holds no secret, at any distance from the cursor."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from completion_engine.context.snippet_choice import CursorLocation, RepositoryView, choose
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.remote.completer import RemoteCompleter
from completion_engine.remote.outbound_text import Masking
from completion_engine.request import CompletionRequest, RepositoryContext, Snippet
from completion_engine.text_window import TextWindow
from ngram_cache import NgramIndex
from ngram_cache.overlays import TokenSource
from tests.quality.redaction import corpus
from tests.remote_server import RemoteServer

Load = Callable[..., RemoteCompleter]
At = Callable[..., CompletionRequest]
KEY, PASSWORD = "sk-live-9aK2mQ8vXz41LpTr77WcYb3N", "tulip-garden-77"
HEAD = f'import os\n\nAPI_KEY = "{KEY}"\nDB_PASSWORD = "{PASSWORD}"\n\n'
VALUES = "".join(f"  value{number}: dHVsaXAxMjM{number}\n" for number in range(20))
MANIFEST = f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\ndata:\n{VALUES}type: Opaque\n---\n"
FILLER = "# a line that says nothing\n"


def heard(server: RemoteServer, tokenizer: Tokenizer) -> str:
    """All that the server was sent, ids as text."""
    bodies = [asked.json for asked in server.completions]
    prompts = [tokenizer.decode(body.pop("prompt")) for body in bodies]
    return "\n".join([*prompts, *map(json.dumps, bodies), *(str(asked.headers) for asked in server.asked)])


def masked(prefix: str, suffix: str) -> str | None:
    """The text that may leave, with the cursor as a sign; None if none may."""
    shown = Masking(TextWindow.for_device("remote")).around(prefix, suffix)
    return "\0".join(shown) if shown else None


def test_no_cursor_in_or_beside_a_secret_brings_it_out() -> None:
    known = [example for example in corpus() if not example.leaks()]
    leaks = [
        (example.text[:at], example.text[at:])
        for example in known
        for at in range(len(example.text) + 1)
        if example.leaks(lambda text, at=at: (masked(text[:at], text[at:]) or "").replace("\0", ""))  # type: ignore[misc]
    ]
    assert len(known) > 250
    assert leaks == []


@pytest.mark.parametrize(
    ("prefix", "suffix", "secret", "is_asked"),
    [
        ("x = 1\npassword = ", f'"{PASSWORD}"\nfoo()\n', PASSWORD, True),
        ("x = 1\npass", f'word = "{PASSWORD}"\nfoo()\n', PASSWORD, True),
        ("env:\n- name: DB_PASSWORD\n", f"  value: {PASSWORD}\n", PASSWORD, True),
        (f"{MANIFEST}kind: ", "\n", "dHVsaXAx", True),
        (
            f"apiVersion: v1\ndata:\n{VALUES}{FILLER * 60}",
            f"x: 1\n{FILLER * 400}kind: Secret\n",
            "dHVsaXAx",
            True,
        ),
        (f"{MANIFEST}spec:\n" + "  key: x\n" * 5 + "  kind: ", "\n", "dHVsaXAx", True),
        ("x = 1\nAPI_KEY=", f"{KEY}\nfoo()\n", KEY[:7], False),
        (f"x = 1\nAPI_KEY={KEY[:12]}", f"{KEY[12:]}\nfoo()\n", KEY[:7], False),
        (f"x = 1\nAPI_KEY={KEY}", "\nfoo()\n", KEY[:7], False),
        ('url = "postgres://app:', 'tulipgarden@host/db"\n', "tulipgarden", False),
        ("kind: Secret\ndata:\n", "  a: dHVsaXAx\n  b: dHVsaXAx\n", "dHVsaXAx", False),
        ("x = 1\n-----BEGIN RSA PRIV", "ATE KEY-----\nMIIEtulip\n", "MIIEtulip", False),
    ],
)
def test_no_byte_that_leaves_is_of_a_secret_that_the_cursor_or_a_window_cuts(
    prefix: str,
    suffix: str,
    secret: str,
    is_asked: bool,
    completer: RemoteCompleter,
    server: RemoteServer,
    tokenizer: Tokenizer,
    request_at: At,
) -> None:
    answer = completer.complete(request_at(prefix, suffix=suffix, language=""))
    assert secret not in heard(server, tokenizer)
    assert (len(server.completions), answer.rule == "secret-at-cursor") == (is_asked, not is_asked)


def test_what_is_shown_of_the_document_out_of_sight_holds_no_secret(
    load: Load, server: RemoteServer, tokenizer: Tokenizer, request_at: At
) -> None:
    steps = "".join(f"def step_{number}(value):\n    return value\n\n\n" for number in range(80))
    prefix = f"{HEAD}{steps}def last(value):\n    "
    view = RepositoryView(
        NgramIndex([]), TokenSource("ones", lambda texts: [[1] for _ in texts]), "library", "app.py"
    )
    context = choose(CursorLocation("app.py", "python", prefix, "\n", TextWindow(2400, 800)), view, 1100)
    assert PASSWORD not in str(context)
    load(server, context_tokens=300).complete(request_at(prefix, context=context, indexed_as="app.py"))
    sent = heard(server, tokenizer)
    assert "import os" in sent
    assert "DB_PASSWORD" in sent
    assert KEY[:7] not in sent
    assert PASSWORD not in sent


def test_nothing_of_a_context_is_sent_unmasked_whoever_chose_it(
    load: Load, server: RemoteServer, tokenizer: Tokenizer, request_at: At
) -> None:
    context = RepositoryContext(f"shop-{KEY}", (Snippet(f"keys/{KEY}.py", HEAD),))
    completer = load(server, context_tokens=300)
    completer.complete(request_at(context=context, indexed_as=f"{KEY}.py"))
    sent = heard(server, tokenizer)
    assert "DB_PASSWORD" in sent
    assert KEY[:12] not in sent
    assert PASSWORD not in sent


@pytest.mark.parametrize("num_before", range(0, 400, 13))
@pytest.mark.parametrize("num_behind", [0, 150, 400])
def test_a_secret_far_above_the_cursor_is_seen_wherever_it_lies(num_before: int, num_behind: int) -> None:
    left = masked(f"{FILLER * num_before}{MANIFEST}{FILLER * num_behind}kind: ", "\n")
    assert left is not None
    assert "dHVsaXAx" not in left
    assert left.count(FILLER) == num_before + num_behind


def test_text_without_secrets_leaves_as_it_is() -> None:
    prefix, suffix = FILLER * 600 + "def mul", "tiply(a, b):\n" + FILLER * 10
    assert masked(prefix, suffix) == f"{prefix}\0{suffix}"


def test_a_key_typed_behind_a_secret_only_appends(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    typed = f"{HEAD}result = compute"
    for num_left in (3, 2, 1, 0):
        prefix = typed[: len(typed) - num_left]
        completer._past.forget("b.py")  # so that each key asks anew
        completer.complete(request_at(prefix, document="b.py"))
    first, *others = (asked.json["prompt"] for asked in server.completions)
    assert len(others) == 3
    assert all(prompt[: len(first)] == first for prompt in others)
