"""The role of a name where it stands, for each language: a definition, a use, a member, a key, a label.

A line of a table is a role and the contexts that have it. A context is the field of a node, `node` for any
child, `outer>node.field` below another node, or `node.+` for all named children but the first. `?field`
requires a field of the node, `?!field` its absence. A role may end in `/space`: names of different spaces
never mean the same.

- `outer` binds in the scope around the node, `def` in the nearest scope, `var` in the nearest function or
  class. `let` binds after the node ends, `decl` after the name ends.
- `param` binds in a declaration without a body too, `tparam` in a class without becoming a member. `assign`
  binds in the file unless the name is visible.
- `member` binds in the nearest class. `access` has a receiver, `own` has none, `field` belongs to the type of
  a literal.
- `import` binds a definition of another file. `global` and `nonlocal` mark a name that is bound outside.
- `keyword` names an argument, `key` is any other name that belongs to no scope.
- `up` leaves the choice to the node above. `set` is a use that defines a member of an own receiver.

Other lines give the kinds of scopes, and settings. Children that are `outside` do not see the names of their
scope. A `receiver` may belong to a class elsewhere, a `literal` names its type, and local names do not
cross a `barrier`. With `implicit`, members need no receiver. With `ordered`, files bind names in order.
With `nested`, a local variable needs another name than those around it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from completion_engine.next_edit.name_tables import TEXTS

_SCOPES = ("function", "block", "class", "enum", "module", "signature")
_SETTINGS = ("nested", "outside", "receiver", "literal", "implicit", "ordered", "barrier")


@dataclass(frozen=True, slots=True)
class RoleTable:
    """The roles of one language by context, each with its condition, and the kinds of its scopes by node."""

    roles: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    scopes: dict[str, str] = field(default_factory=dict)
    settings: dict[str, frozenset[str]] = field(default_factory=dict)

    def setting(self, name: str) -> frozenset[str]:
        """Return the contexts of a line that is neither a role nor a kind of scope."""
        return self.settings.get(name, frozenset())


def _table(text: str) -> RoleTable:
    table = RoleTable()
    for line in filter(None, text.split("\n")):
        role, _, contexts = line.partition(": ")
        for context in contexts.split():
            if role in _SCOPES:
                table.scopes[context] = role
            elif role in _SETTINGS:
                table.settings[role] = table.setting(role) | {context}
            else:
                place, _, condition = context.partition("?")
                table.roles.setdefault(place, []).append((condition, role))
    return table


TABLES = {language: _table(text) for language, text in TEXTS.items()}
