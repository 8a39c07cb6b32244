"""Writes a program of the small language in eight languages: a line for each statement, head and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.completion_engine.next_edit.small_programs import Line, Name, Scope


@dataclass(frozen=True, slots=True)
class Form:
    """How a language writes each kind of line. A head ends with what opens its body."""

    lines: dict[str, str]
    heads: dict[str, str]
    end: str = "}"
    parameter: str = "{}"
    own: str = "this.{}"
    first: str = ""
    last: str = ""
    owner: str = ""  # the first parameter of a method
    is_open: bool = False  # methods stand outside of their class


_BRACES = {
    "assign": "{0} = {1};",
    "use": "use({0}, {1});",
    "key": "make({{ {0}: {1} }});",
    "short": "make({{ {0} }});",
    "field": "{0} = 1;",
}
_SCRIPT = Form(
    {**_BRACES, "global": "let {0} = {1};", "local": "let {0} = {1};", "closure": "use(({0}) => {1});"},
    {
        "function": "function {0}({1}) {{",
        "method": "{0}({1}) {{",
        "class": "class {0} {{",
        "block": "if ({0}) {{",
    },
)
FORMS = {
    "python": Form(
        {
            "global": "{0} = {1}",
            "local": "{0} = {1}",
            "use": "use({0}, {1})",
            "key": "make({0}={1})",
            "field": "{0} = 1",
            "closure": "use(lambda {0}: {1})",
        },
        {"function": "def {0}({1}):", "method": "def {0}({1}):", "class": "class {0}:", "block": "if {0}:"},
        end="pass",
        own="self.{}",
        owner="self",
    ),
    "javascript": _SCRIPT,
    "typescript": Form(_SCRIPT.lines, _SCRIPT.heads, parameter="{}: number"),
    "go": Form(
        {
            "global": "var {0} = {1}",
            "local": "{0} := {1}",
            "assign": "{0} = {1}",
            "use": "use({0}, {1})",
            "key": "build(Box{{{0}: {1}}})",
            "field": "{0} int",
            "closure": "use(func({0} int) int {{ return {1} }})",
        },
        {
            "function": "func {0}({1}) {{",
            "method": "func (it *{2}) {0}({1}) {{",
            "class": "type {0} struct {{",
            "block": "if {0} > 0 {{",
        },
        parameter="{} int",
        own="it.{}",
        first="package p",
        is_open=True,
    ),
    "rust": Form(
        {
            **_BRACES,
            "global": "static {0}: u8 = {1};",
            "local": "let {0} = {1};",
            "key": "make(Box {{ {0}: {1} }});",
            "short": "make(Box {{ {0} }});",
            "field": "{0}: u8,",
            "closure": "use_it(|{0}| {1});",
            "use": "use_it({0}, {1});",
        },
        {
            "function": "fn {0}({1}) {{",
            "method": "impl {2} {{ fn {0}({1}) {{",
            "class": "struct {0} {{",
            "block": "if {0} > 0 {{",
        },
        parameter="{}: u8",
        own="self.{}",
        owner="&self",
        is_open=True,
    ),
    "java": Form(
        {
            **_BRACES,
            "global": "static int {0} = {1};",
            "local": "int {0} = {1};",
            "key": "{0}: use({1});",
            "field": "int {0} = 1;",
            "closure": "use({0} -> {1});",
        },
        {
            "function": "static int {0}({1}) {{",
            "method": "int {0}({1}) {{",
            "class": "static class {0} {{",
            "block": "if ({0} > 0) {{",
        },
        parameter="int {}",
        first="class Main {",
        last="}",
    ),
    "c": Form(
        {
            **_BRACES,
            "global": "int {0} = {1};",
            "local": "int {0} = {1};",
            "key": "make((struct box){{ .{0} = {1} }});",
        },
        {"function": "int {0}({1}) {{", "block": "if ({0}) {{"},
        parameter="int {}",
    ),
    "lua": Form(
        {
            "global": "local {0} = {1}",
            "local": "local {0} = {1}",
            "assign": "{0} = {1}",
            "use": "use({0}, {1})",
            "key": "make({{ {0} = {1} }})",
            "closure": "use(function({0}) return {1} end)",
        },
        {"function": "local function {0}({1})", "block": "if {0} then"},
        end="end",
    ),
}


def text_of(language: str, file: Scope) -> str:
    """Return a program as text; the lines of its scopes are set."""
    form = FORMS[language]
    lines = [form.first] if form.first else []
    for line, scope in _lines(form, file, 0):
        if scope is not None:
            scope.line = len(lines) + 1
        lines.append(line)
    return "\n".join([*lines, form.last, ""])


def _lines(form: Form, scope: Scope, depth: int) -> Iterator[tuple[str, Scope | None]]:
    """Yield the lines of a scope's body, each with the scope that begins there."""
    indent = "    " * depth
    for it in scope.lines:
        if isinstance(it, Line):
            yield f"{indent}{form.lines[it.kind].format(*map(_written(form), it.names))}", None
        elif it.kind == "closure":
            yield f"{indent}{form.lines['closure'].format(*map(_written(form), it.head))}", it
        elif not (form.is_open and scope.kind == "class"):
            yield f"{indent}{_head(form, it)}", it
            yield from _lines(form, it, depth + 1)
            yield f"{indent}{'    ' if form.end == 'pass' else ''}{form.end}", None
            if form.is_open and it.kind == "class":
                yield from _methods(form, it)


def _methods(form: Form, around: Scope) -> Iterator[tuple[str, Scope | None]]:
    for it in around.lines:
        if isinstance(it, Scope):
            yield _head(form, it), it
            yield from _lines(form, it, 1)
            yield form.end * _head(form, it).count("{"), None


def _head(form: Form, scope: Scope) -> str:
    name, *parameters = scope.head
    is_method = scope.parent is not None and scope.parent.kind == "class"
    kind = "method" if is_method else scope.kind
    if kind == "block":
        return form.heads[kind].format(_written(form)(name))
    written = [form.parameter.format(it.text) for it in parameters]
    listed = ", ".join([form.owner, *written] if is_method and form.owner else written)
    owner = scope.owner.text if scope.owner is not None else ""
    return form.heads[kind].format(name.text, listed, owner)


def _written(form: Form) -> Callable[[Name], str]:
    def write(name: Name) -> str:
        if name.role == "own":
            return form.own.format(name.text)
        if name.role == "other":
            return f"other.{name.text}"
        if name.role == "call":
            return f"{name.text}()"
        is_expanded = name.role == "short" and name.old not in ("", name.text)
        return f"{name.old}: {name.text}" if is_expanded else name.text

    return write
