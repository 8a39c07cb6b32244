"""The requests of llama-server, OpenAI-like servers and Ollama: read as a `Query`, answered as they do.

Clients format prompts for one family of models. The text around the cursor is read back; the engine builds
its own prompt.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from completion_engine.text_window import without_surrogates
from lsp_server.http_api.connections import RefusedError
from lsp_server.workspace.documents import plain_newlines

MODEL, _JSON = "slipstream", "application/json"
_MAX_CHUNKS = 64
Body = Mapping[str, Any]

# Marks of the prefix, the suffix and the middle, in any order in a prompt. Codestral has none for the middle.
_TEMPLATES = (
    ("<|fim_prefix|> ", " <|fim_suffix|>", " <|fim_middle|>"),  # ProxyAI adds the spaces
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    ("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # noqa: RUF001 - DeepSeek's own
    ("<PRE> ", " <SUF>", " <MID>"),
    ("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
    ("[PREFIX]", "[SUFFIX]", "[MIDDLE]"),
)
_COMMENT = r"(?:#|//|--|;|%|<!--|/\*|\")"
# The name of the file whose text follows: after a mark of a model's family, or as a comment.
_NAME = re.compile(
    r"(?P<mark><\|file_sep\|>|<file_sep>|<filename>|<\|file_separator\|>|<｜file▁sep｜>|^\+{5} )?"  # noqa: RUF001
    rf"(?(mark)|^{_COMMENT} ?)((?:[\w.@~ -]{{1,80}}/)*[\w.@-]{{1,80}}\.\w{{1,12}}) *(?:-->|\*/)?\n",
    re.MULTILINE,
)
_LEADING_COMMENTS = re.compile(rf"\n?(?:[ \t]*{_COMMENT}[^\n]*\n)*")
_LANGUAGE = re.compile(rf"\W{{1,8}}language: (\S{{1,40}})[^\n]*\n(?:{_COMMENT}+ *indentation: [^\n]*\n)?")


@dataclass(frozen=True, slots=True)
class CursorText:
    """The text around a cursor. It may be from one of the `other_names`, files that the client has read."""

    prefix: str
    suffix: str
    name: str = ""
    language: str = ""
    other_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A request for a completion. If it is not `is_asked`, the client wants nothing but warm caches."""

    cursor: CursorText
    limits: Mapping[str, int]
    is_asked: bool
    streams: bool
    stops: object = None
    fields: object = None


def read_json(body: bytes) -> Body:
    """Return the JSON object of a body. Raises RefusedError."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RefusedError(400, "The body is not a JSON object.")
    return found


def write_json(value: object) -> bytes:
    """Return compact JSON: llama.vim looks for `"content":"` without a space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _text(body: Body, name: str) -> str:
    value = body.get(name)
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if not isinstance(value, str | None):
        raise RefusedError(400, f"{name} must be a string.")
    return plain_newlines(without_surrogates(value or ""))


def read_prompt(prompt: str, suffix: str = "") -> CursorText:
    """Return the text around the cursor of a prompt, which may have the marks of a template."""
    before, prefix = "", prompt
    for template in _TEMPLATES:
        if all(mark in prompt or mark == "[MIDDLE]" for mark in template):
            before, *pieces = re.split(f"({'|'.join(map(re.escape, template))})", prompt)
            parts = dict(zip(pieces[::2], pieces[1::2], strict=True))
            first, suffix, middle = (parts.get(mark, "") for mark in template)
            prefix = first + middle
            break
    if note := _LANGUAGE.match(prefix):  # minuet
        return CursorText(prefix[note.end() :], suffix, language=note[1])
    comments = _LEADING_COMMENTS.match(prefix)
    num_comments = comments.end() if comments else 0
    named = [it for it in _NAME.finditer(prefix) if it["mark"] or it.start() < num_comments]
    if named:  # texts of other files come first, then the name of this one
        return CursorText(prefix[named[-1].end() :], suffix, named[-1][2])
    names = [found[2] for found in _NAME.finditer(f"{before}\n")]
    return CursorText(prefix, suffix, names[-1] if names else "")


def _query(cursor: CursorText, options: Body, max_tokens: str, *, streams: bool) -> Query:
    """Return a query with the limits that a client sets; 0 tokens ask for nothing."""
    wanted = {"maxTokens": options.get(max_tokens), "deadlineMs": options.get("t_max_predict_ms")}
    limits = {name: value for name, value in wanted.items() if isinstance(value, int) and value > 0}
    is_asked = wanted["maxTokens"] != 0 and bool(cursor.prefix or cursor.suffix)
    return Query(cursor, limits, is_asked, streams, options.get("stop"), options.get("response_fields"))


def _times(stats: Body) -> dict[str, tuple[int, float]]:
    """Return the tokens and milliseconds of reading the prompt and of writing."""
    ms = stats.get("ms", {})
    reading_ms = float(ms.get("prefill", 0.0)) + float(ms.get("prompt", 0.0))
    num_read = stats.get("num_prompt_tokens", 0) - stats.get("num_cached_tokens", 0)
    writing_ms = max(0.0, float(ms.get("total", 0.0)) - reading_ms)
    return {"prompt": (num_read, reading_ms), "predicted": (stats.get("num_tokens", 0), writing_ms)}


def _as_event(query: Query, value: object, end: bytes = b"") -> tuple[str, bytes]:
    data = write_json(value)
    return ("text/event-stream", b"data: %b\n\n%b" % (data, end)) if query.streams else (_JSON, data)


def _read_infill(body: Body) -> Query:
    extra = body.get("input_extra")
    chunks = [chunk for chunk in (extra if isinstance(extra, list) else ()) if isinstance(chunk, dict)]
    others = dict.fromkeys(_text(chunk, "filename") for chunk in chunks[:_MAX_CHUNKS])
    prefix = _text(body, "input_prefix") + _text(body, "prompt")
    cursor = CursorText(prefix, _text(body, "input_suffix"), other_names=tuple(others))
    return _query(cursor, body, "n_predict", streams=body.get("stream") is True)


def _write_infill(query: Query, text: str, stats: Body) -> tuple[str, bytes]:
    timings: dict[str, float] = {}
    for kind, (num_tokens, ms) in _times(stats).items():
        timings |= {f"{kind}_n": num_tokens, f"{kind}_ms": round(ms, 3)}
        timings[f"{kind}_per_token_ms"] = round(ms / num_tokens, 3) if num_tokens else 0.0
        timings[f"{kind}_per_second"] = round(num_tokens / ms * 1000, 3) if ms else 0.0
    facts = {"model": MODEL, "stop": True, "truncated": False, "timings": timings}
    whole: dict[str, Any] = {"content": text, "tokens_cached": stats.get("num_cached_tokens", 0), **facts}
    if isinstance(query.fields, list):
        flat = whole | {f"timings/{name}": value for name, value in timings.items()}
        whole = {name: flat[name] for name in query.fields if isinstance(name, str) and name in flat}
    return _as_event(query, whole)


def _read_openai(body: Body) -> Query:
    cursor = read_prompt(_text(body, "prompt"), _text(body, "suffix"))
    return _query(cursor, body, "max_tokens", streams=body.get("stream") is True)


def _write_openai(query: Query, text: str, stats: Body) -> tuple[str, bytes]:
    num_read, num_written = (stats.get(name, 0) for name in ("num_prompt_tokens", "num_tokens"))
    usage = {"prompt_tokens": num_read, "completion_tokens": num_written}
    usage["total_tokens"] = num_read + num_written
    head = {"id": f"cmpl-{time.time_ns():x}", "object": "text_completion", "created": int(time.time())}
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": "stop"}
    whole = {**head, "model": MODEL, "choices": [choice], "usage": usage}
    return _as_event(query, whole, b"data: [DONE]\n\n")


def _read_ollama(body: Body) -> Query:
    options = given if isinstance(given := body.get("options"), dict) else {}
    cursor = read_prompt(_text(body, "prompt"), _text(body, "suffix"))
    return _query(cursor, options, "num_predict", streams=body.get("stream") is not False)


def _write_ollama(query: Query, text: str, stats: Body) -> tuple[str, bytes]:
    (num_read, reading_ms), (num_written, writing_ms) = _times(stats).values()
    head = {"model": MODEL, "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    last = {"done": True, "done_reason": "stop", "total_duration": int((reading_ms + writing_ms) * 1e6)}
    last |= {"prompt_eval_count": num_read, "eval_count": num_written}
    if not query.streams:
        return _JSON, write_json({**head, "response": text, **last})
    first = write_json({**head, "response": text, "done": False})
    return "application/x-ndjson", b"%b\n%b\n" % (first, write_json({**head, "response": "", **last}))


# By address: how a request is read, and how the type and the bytes of its response are written.
DIALECTS: Mapping[str, tuple[Callable[[Body], Query], Callable[[Query, str, Body], tuple[str, bytes]]]] = {
    "/infill": (_read_infill, _write_infill),
    "/v1/completions": (_read_openai, _write_openai),
    "/api/generate": (_read_ollama, _write_ollama),
}
