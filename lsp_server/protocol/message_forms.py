"""Messages of clients that are known to send another form than the standard's, brought into its form."""

from __future__ import annotations

from functools import cache
from typing import Any

from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, override
from lsprotocol import types
from lsprotocol.converters import get_converter

_INLINE = types.TEXT_DOCUMENT_INLINE_COMPLETION
_TRIGGERS = tuple(kind.value for kind in types.InlineCompletionTriggerKind)
MAX_UINTEGER = (1 << 31) - 1


@cache
def converter() -> Converter:
    """As pygls makes it, but the first wrong value ends it: a report of all of them takes seconds.

    One for all servers: it writes code of its own for each type of message, in tens of milliseconds.
    """
    made: Converter = get_converter(Converter(detailed_validation=False))
    made.register_structure_hook(types.Position, lambda value, _: _position(value))
    # Deprecated, of no use here, and as often beyond the protocol's numbers.
    partial, is_left_out = types.TextDocumentContentChangePartial, override(omit=True)
    made.register_structure_hook(partial, make_dict_structure_fn(partial, made, range_length=is_left_out))
    return made


def _position(value: Any) -> types.Position:
    """A position within the protocol's numbers: editors name the end of a document by larger ones."""
    line, character = (int(min(max(0, value[name]), MAX_UINTEGER)) for name in ("line", "character"))
    return types.Position(line, character)


def adapted(message: dict[str, Any]) -> dict[str, Any]:
    """A message as the standard has it, where clients are known to send another form."""
    if message.get("method") == _INLINE:
        return _with_context(message)
    return _in_utf16(message) if message.get("method") == types.INITIALIZE else message


def _in_utf16(message: dict[str, Any]) -> dict[str, Any]:
    """Leave out the position encodings of a client whose plugin counts UTF-16 units whatever is agreed on."""
    params = message.get("params")
    if not isinstance(params, dict) or not names_plugin(params.get("initializationOptions")):
        return message
    capabilities = params.get("capabilities")
    if not isinstance(capabilities, dict):
        return message
    return {**message, "params": {**params, "capabilities": {**capabilities, "general": None}}}


def names_plugin(options: object) -> bool:
    """Return whether these initialization options are those of the clients that `older_clients` serves."""
    return isinstance(options, dict) and "editorPluginInfo" in options


def _with_context(message: dict[str, Any]) -> dict[str, Any]:
    """An inline completion request with a valid trigger: drafts of the protocol had other numbers, or none.

    A missing context counts as typing, and an unknown trigger as an explicit request.
    """
    params = message.get("params")
    if not isinstance(params, dict):
        return message
    context = params.get("context")
    if context is None:
        context = {"triggerKind": types.InlineCompletionTriggerKind.Automatic.value}
    elif isinstance(context, dict) and context.get("triggerKind") not in _TRIGGERS:
        context = {**context, "triggerKind": types.InlineCompletionTriggerKind.Invoked.value}
    return {**message, "params": {**params, "context": context}}
