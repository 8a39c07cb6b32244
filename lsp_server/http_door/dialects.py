"""The requests of three kinds of servers as data: llama-server, OpenAI-like servers and Ollama.

Each dialect reads a request into a `Query` and writes an `Answer` as that server would. No dialect's template
is used: marks of templates are read back, and the engine builds its own prompt.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from completion_engine.text_window import without_surrogates
from lsp_server.http_door.completions import Answer
from lsp_server.http_door.documents import CursorText
from lsp_server.http_door.line_index import MIN_SHARE, share_of, significant_lines
from lsp_server.workspace.documents import plain_newlines

JSON, EVENTS, LINES = "application/json", "text/event-stream", "application/x-ndjson"
MODEL = "slipstream"
Body = Mapping[str, Any]


class QueryError(Exception):
    """A request's body cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Query:
    """A request for a completion. One that is `only_shown` warms the caches and is answered at once."""

    cursor: CursorText
    only_shown: bool = False
    streams: bool = False
    stops: tuple[str, ...] = ()
    fields: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a kind of server reads requests and writes answers, as the type and bytes of a response."""

    read: Callable[[Body], Query]
    write: Callable[[Query, Answer], tuple[str, bytes]]


class _Template(NamedTuple):
    prefix: str
    suffix: str
    middle: str


_TEMPLATES = (
    _Template("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),  # Qwen, CodeGemma
    _Template("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # StarCoder, Granite
    _Template("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
    _Template("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # noqa: RUF001 - DeepSeek
    _Template("<PRE> ", " <SUF>", " <MID>"),  # CodeLlama
    _Template("[PREFIX]", "[SUFFIX]", "[MIDDLE]"),  # Codestral; its middle has no mark
    _Template("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),  # GLM
)
_FILE_MARKS = re.compile(r"(?:<\|file_sep\|>|<file_sep>|<filename>|<｜file▁sep｜>)([^\n<]{1,500})")  # noqa: RUF001
# Lines that minuet puts before the text of the file.
_NOTES = re.compile(r"\A(?:\W{1,8}(?:language: (\S{1,40})|indentation: use [^\n]{1,60})[^\n\w]{0,8}\n)+\n?")


def read_json(body: bytes) -> Body:
    """Return the JSON object of a body. Raises QueryError."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise QueryError("The body is not valid JSON.") from error
    if not isinstance(found, dict):
        raise QueryError("The body is not a JSON object.")
    return found


def write_json(value: object) -> bytes:
    """Return compact JSON: llama.vim looks for `"content":"` without a space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _text(body: Body, name: str) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str):
        raise QueryError(f"{name} must be a string.")
    return plain_newlines(without_surrogates(value))


def _stops(value: object) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(one for one in values if isinstance(one, str) and one)


def _read_prompt(body: Body) -> CursorText:
    """Return the text of `prompt` and `suffix`, or of a prompt with the marks of a template."""
    prompt, suffix = _text(body, "prompt"), _text(body, "suffix")
    for template in _TEMPLATES:
        if template.suffix in prompt and template.prefix in prompt:
            return _read_marks(prompt, template)
    language = ""
    if notes := _NOTES.match(prompt):
        prompt, language = prompt[notes.end() :], notes[1] or ""
    return CursorText(prompt, suffix, language=language)


def _read_marks(prompt: str, template: _Template) -> CursorText:
    """Read the parts of a template in any order; before them there may be names and texts of other files."""
    parts = dict.fromkeys(template, "")
    marks = re.split(f"({'|'.join(map(re.escape, template))})", prompt)
    for mark, part in zip(marks[1::2], marks[2::2], strict=True):
        parts[mark] = part
    names = _FILE_MARKS.findall(marks[0])
    prefix = parts[template.prefix] + parts[template.middle]
    if name := _FILE_MARKS.match(prefix):
        prefix, names = prefix[name.end() :].removeprefix("\n"), [name[1]]
    return CursorText(prefix, parts[template.suffix], tuple(name.strip() for name in names[-1:]))


def _cut(text: str, stops: tuple[str, ...]) -> str:
    """Return a text up to the first of the strings at which the client wants it to stop."""
    ends = [at for stop in stops if (at := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text


def _count(answer: Answer, name: str) -> int:
    return int(answer.stats.get(name, 0))


def _times_ms(answer: Answer) -> tuple[float, float]:
    """Return the times of reading the prompt and of writing, as the two of other servers."""
    ms = answer.stats.get("ms", {})
    reading = float(ms.get("prefill", 0.0)) + float(ms.get("prompt", 0.0))
    return reading, max(0.0, float(ms.get("total", 0.0)) - reading)


# llama-server: llama.vim, llama.vscode.


def _read_infill(body: Body) -> Query:
    prefix = _text(body, "input_prefix") + _text(body, "prompt")
    suffix = _text(body, "input_suffix")
    fields = body.get("response_fields")
    return Query(
        CursorText(prefix, suffix, _names_in(body.get("input_extra"), prefix + suffix)),
        only_shown=body.get("n_predict") == 0,
        streams=body.get("stream") is True,
        stops=_stops(body.get("stop")),
        fields=tuple(map(str, fields)) if isinstance(fields, list) else None,
    )


def _names_in(chunks: object, text: str) -> tuple[str, ...]:
    """Return the file names of those chunks of other context that are from the same text."""
    lines = significant_lines(text)
    found = []
    for chunk in chunks if isinstance(chunks, list) else ():
        if isinstance(chunk, dict):
            name, piece = chunk.get("filename"), chunk.get("text")
            is_named = isinstance(name, str) and isinstance(piece, str) and name != ""
            if is_named and share_of(significant_lines(piece), lines) >= MIN_SHARE:
                found.append(name)
    return tuple(dict.fromkeys(found))


def _write_infill(query: Query, answer: Answer) -> tuple[str, bytes]:
    reading_ms, writing_ms = _times_ms(answer)
    num_read = _count(answer, "num_prompt_tokens") - _count(answer, "num_cached_tokens")
    whole = {
        "index": 0,
        "content": answer.text,
        "model": MODEL,
        "stop": True,
        "stop_type": "eos",
        "tokens_predicted": _count(answer, "num_tokens"),
        "tokens_evaluated": _count(answer, "num_prompt_tokens"),
        "tokens_cached": _count(answer, "num_cached_tokens"),
        "truncated": False,
        "timings": {
            **_timings("prompt", num_read, reading_ms),
            **_timings("predicted", _count(answer, "num_tokens"), writing_ms),
        },
    }
    if query.fields is not None:
        named = {name: _member(whole, name) for name in query.fields}
        whole = {name: value for name, value in named.items() if value is not None}
    data = write_json(whole)
    return (EVENTS, b"data: %b\n\n" % data) if query.streams else (JSON, data)


def _timings(kind: str, num_tokens: int, ms: float) -> dict[str, float]:
    return {
        f"{kind}_n": num_tokens,
        f"{kind}_ms": round(ms, 3),
        f"{kind}_per_token_ms": round(ms / num_tokens, 3) if num_tokens else 0.0,
        f"{kind}_per_second": round(num_tokens / ms * 1000, 3) if ms else 0.0,
    }


def _member(whole: Any, name: str) -> Any:
    for part in name.split("/"):
        whole = whole.get(part) if isinstance(whole, dict) else None
    return whole


# OpenAI: Zed, minuet, Twinny, ProxyAI.


def _read_openai(body: Body) -> Query:
    return Query(
        _read_prompt(body),
        only_shown=body.get("max_tokens") == 0,
        streams=body.get("stream") is True,
        stops=_stops(body.get("stop")),
    )


def _write_openai(query: Query, answer: Answer) -> tuple[str, bytes]:
    num_read, num_written = _count(answer, "num_prompt_tokens"), _count(answer, "num_tokens")
    choice = {"index": 0, "text": answer.text, "logprobs": None, "finish_reason": "stop"}
    whole = {
        "id": f"cmpl-{time.time_ns():x}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": MODEL,
        "choices": [choice],
        "usage": {
            "prompt_tokens": num_read,
            "completion_tokens": num_written,
            "total_tokens": num_read + num_written,
        },
    }
    data = write_json(whole)
    return (EVENTS, b"data: %b\n\ndata: [DONE]\n\n" % data) if query.streams else (JSON, data)


# Ollama: Continue.


def _read_ollama(body: Body) -> Query:
    options = body.get("options")
    options = options if isinstance(options, dict) else {}
    return Query(
        _read_prompt(body),
        only_shown=options.get("num_predict") == 0 or not body.get("prompt"),
        streams=body.get("stream") is not False,
        stops=_stops(options.get("stop")),
    )


def _write_ollama(query: Query, answer: Answer) -> tuple[str, bytes]:
    reading_ms, writing_ms = _times_ms(answer)
    common = {"model": MODEL, "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    last = {
        **common,
        "response": answer.text,
        "done": True,
        "done_reason": "stop",
        "total_duration": int((reading_ms + writing_ms) * 1e6),
        "load_duration": 0,
        "prompt_eval_count": _count(answer, "num_prompt_tokens"),
        "prompt_eval_duration": int(reading_ms * 1e6),
        "eval_count": _count(answer, "num_tokens"),
        "eval_duration": int(writing_ms * 1e6),
    }
    if not query.streams:
        return JSON, write_json(last)
    first = {**common, "response": answer.text, "done": False}
    return LINES, b"%b\n%b\n" % (write_json(first), write_json({**last, "response": ""}))


DIALECTS: Mapping[str, Dialect] = {
    "/infill": Dialect(_read_infill, _write_infill),
    "/v1/completions": Dialect(_read_openai, _write_openai),
    "/api/generate": Dialect(_read_ollama, _write_ollama),
}


def written(dialect: Dialect, query: Query, answer: Answer) -> tuple[str, bytes]:
    """Return an answer in its dialect, cut at the client's stop strings."""
    return dialect.write(query, replace(answer, text=_cut(answer.text, query.stops)))
