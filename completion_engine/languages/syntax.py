"""How a language is written: its opening and closing marks, and the beginnings and ends of its blocks.

The tables in `braces`, `scripts`, `texts` and `hosts` consist of such values. Does not depend on documents
or scanning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

Blocks = Literal["indent", "brace", "end", "tag", "text"]
Kind = Literal["bracket", "string", "comment", "region", "tag", "element", "nested-element"]

NEVER = re.compile(r"(?!)")
ESCAPED = (r"\\[^\n]",)
_NUM_CHARS_BEFORE = 80  # text before a mark that decides whether it counts
_NUM_WORD_CHARS = 16
_NUM_CHARS_ABOVE = 240  # text before a mark that may name a language


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A pair of marks, and what stands between them.

    `opens` and `closes` are regular expressions in which `^` is the beginning of a line. `closes` may hold
    `<tag>`, the text of the group `tag` of `opens`, and `<width>`, the width of its group `indent`; an empty
    one is the end of the line. `holds` names the language inside: empty for the one around it, `<lang>` for
    the one that the group `lang` names. `before` must match what stands left of the opening mark, to its end.
    `inner` are the pairs that may open within a string, or anywhere in a region, and `escapes` what closes
    nothing in a string. A region ends at `closes` whatever is open in it, but for code in `${}` if it is a
    template. It `begins_below` if it begins with the next line. `named_above` finds its language in the text
    before its opening mark: the name of its group, or the text of an unnamed one. If it finds none, the mark
    opens the pair `otherwise`.
    """

    opens: str
    closes: str = ""
    kind: Kind = "string"
    holds: str = ""
    before: re.Pattern[str] | None = None
    inner: tuple[Pair, ...] = ()
    escapes: tuple[str, ...] = ()
    is_multiline: bool = False
    begins_below: bool = False
    first: str = ""  # the characters that the opening mark may begin with, where its expression hides them
    is_template: bool = False
    named_above: re.Pattern[str] | None = None
    otherwise: Pair | None = None

    is_text: bool = field(init=False)  # a string or comment
    is_code: bool = field(init=False)  # a bracket or tag: code goes on in it
    ends_with_line: bool = field(init=False)  # it is closed at the end of its line, if not before
    closing: str = field(init=False)  # the bracket that closes it, if one does

    def __post_init__(self) -> None:
        is_line_bound = not self.is_multiline and self.kind in ("string", "comment", "bracket")
        is_bracket = self.kind == "bracket" and self.closes in (r"\)", r"\]", r"\}")
        object.__setattr__(self, "is_text", self.kind in ("string", "comment"))
        object.__setattr__(self, "is_code", self.kind in ("bracket", "tag", "nested-element"))
        object.__setattr__(self, "ends_with_line", is_line_bound)
        object.__setattr__(self, "closing", self.closes[-1] if is_bracket else "")

    def allows(self, text: str, at: int) -> bool:
        """Whether the opening mark may be at an offset of a text, by the text before it.

        The last word or sign decides, and one blank in place of all that follow it.
        """
        if self.before is None:
            return True
        near = text[max(0, at - _NUM_CHARS_BEFORE) : at]
        word = near.rstrip()
        blanks = near[len(word) :]
        blank = "\n" if "\n" in blanks else blanks[:1]
        return self.before.search(word[-_NUM_WORD_CHARS:] + blank) is not None

    def name_above(self, text: str, at: int) -> str:
        """The name of its language in the text before an opening mark; empty if there is none."""
        if self.named_above is None:
            return ""
        found = self.named_above.search(text[max(0, at - _NUM_CHARS_ABOVE) : at])
        return (found.lastgroup or found[1]) if found else ""


@dataclass(frozen=True, slots=True, eq=False)
class Markup:
    """How a language writes elements.

    `raw` names the languages of elements that hold no markup, `void` are the elements that hold nothing, both
    in lower case. With `braces` these hold code of that language, in text and among attributes.
    `attributes` are the attributes whose value is code.
    """

    raw: Mapping[str, str] = field(default_factory=dict)
    void: frozenset[str] = frozenset()
    braces: str | None = None
    attributes: tuple[Pair, ...] = ()
    is_nested_in_code: bool = False  # an element is an expression


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """The properties of a language that the rules use.

    `opener` finds the end of a line that begins a block without a bracket, `unfinished` the end of a line
    whose statement goes on, `prelude` a line that belongs to the statement after it. A next line that begins
    with a match of `leading` continues the statement before it.
    """

    blocks: Blocks = "brace"
    pairs: tuple[Pair, ...] = ()
    brackets: str = "()[]{}"
    markup: Markup | None = None
    ends: str = ""  # the mark that ends its region, unless it is in a string
    lone: str = ""  # the language of a document in which no part is marked
    skipped: tuple[str, ...] = ()  # text that looks like a mark and is not one
    opener: re.Pattern[str] = NEVER
    unfinished: re.Pattern[str] = re.compile(r"\\$")
    prelude: re.Pattern[str] = NEVER
    leading: re.Pattern[str] | None = None
    clauses: frozenset[str] = frozenset()
    closers: frozenset[str] = frozenset()
    line: re.Pattern[str] | None = None  # the beginning of a line in which no bracket or text is open
    label: re.Pattern[str] = NEVER  # a line up to a closing bracket that closes nothing: a shell pattern
    word_marks: str = "_"
    separators: str = ""  # marks between two items that may not follow the last one
    has_fences: bool = False  # a line of three backticks may stand in it
    indents_with_tabs: bool = False
    has_fixed_indents: bool = False  # tabs and spaces mean different things
    has_dashes: bool = False  # a dash begins an item, and what follows it is indented by it too
    marks_blocks: bool = False  # a line before deeper ones ends with a mark, or with a bracket open

    @property
    def is_text(self) -> bool:
        """Whether it is prose, and no code."""
        return self.blocks == "text"

    @property
    def is_marked(self) -> bool:
        """Whether signs such as `*` and `$` mark its text."""
        return self.is_text or self.has_fences

    @property
    def has_directives(self) -> bool:
        """Whether a line such as `#if` is a preprocessor directive, and not a comment."""
        return not any(pair.kind == "comment" and re.match(pair.opens, "#if") for pair in self.pairs)


def line_comment(opens: str) -> Pair:
    """A comment that ends with its line; `opens` is a regular expression."""
    return Pair(opens, kind="comment")


def block_comment(opens: str, closes: str) -> Pair:
    """A comment between two literal marks."""
    return Pair(re.escape(opens), re.escape(closes), "comment", is_multiline=True)


def string(  # noqa: PLR0913 - what strings differ in
    mark: str,
    *,
    opens: str = "",
    inner: tuple[Pair, ...] = (),
    escapes: tuple[str, ...] = ESCAPED,
    is_multiline: bool = False,
    first: str = "",
) -> Pair:
    """A string that a literal mark closes and, unless `opens` is another expression, opens."""
    opens, closes = opens or re.escape(mark), re.escape(mark)
    return Pair(opens, closes, inner=inner, escapes=escapes, is_multiline=is_multiline, first=first)


long_string = partial(string, is_multiline=True)  # a string that may run over line ends


def code_in(mark: str, closes: str, holds: str = "") -> Pair:
    """Code in a string or text, between literal marks; `closes` is a bracket."""
    return Pair(re.escape(mark), re.escape(closes), "bracket", holds, is_multiline=True)


def region(
    opens: str, closes: str, holds: str, *, begins_below: bool = False, is_template: bool = False
) -> Pair:
    """A part of a document in another language."""
    return Pair(opens, closes, "region", holds, begins_below=begins_below, is_template=is_template)


def heredoc(opens: str, closes: str, *inner: Pair) -> Pair:
    """Text from the next line up to a line of the opening word, which may name the language of the text.

    The pairs of `inner` open code of the language around it.
    """
    return Pair(opens, closes, "region", "<tag>", inner=inner, begins_below=True)
