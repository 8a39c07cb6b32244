"""Comment marks and quotes of each language. Data only; a language without a row has brackets and quotes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from completion_engine.cutting.language_names import canonical_language

# languages | comment marks; `a..b` is a comment from `a` to `b` | quotes; `~` after one that may span lines,
# `c` for characters in single quotes | what opens code in a string | traits
_TABLE = r'''
c cpp cuda-cpp glsl hlsl objective-c objective-cpp shaderlab yacc | // /*..*/ | " c | | directives
wgsl v openscad odin d haxe thrift vala solidity jsp | // /*..*/ | " c | |
java gleam | // /*..*/ | """~ " c | |
proto prisma dot gomod kdl ron | // /*..*/ | " ' | |
csharp | // /*..*/ | """~ " c | { | prelude-brackets directives
kotlin scala | // /*..*/ | """~ " c | ${ |
swift | // /*..*/ | """~ " | \( | directives
groovy dart | // /*..*/ | """~ \'\'\'~ " ' | ${ | regex
javascript javascriptreact typescript typescriptreact qml astro | // /*..*/ | `~ " ' | ${ | regex
go templ | // /*..*/ | `~ " c | |
rust | // /*..*/ | "~ c | |
zig | // | " c | |
php-code | // # /*..*/ | "~ '~ | {$ ${ |
css less scss stylus | // /*..*/ | " ' | |
json jsonl | | " | | data
jsonc json5 hocon jsonnet | // /*..*/ # | " | | data
graphql | # | """~ " | | data
sql | -- /*..*/ | '~ " ` | | statements
python cython starlark mojo gdscript | # | """~ \'\'\'~ " ' | { | indented colons
coffeescript | # | """~ \'\'\'~ " ' | #{ | indented
nim | # | """~ " c | | indented
ruby crystal | # =begin..=end | "~ '~ ` | #{ | regex ends
elixir | # | """~ \'\'\'~ " ' | #{ | ends
julia | # #=..=# | """~ "~ c | $( | ends
perl raku | # | "~ '~ | | regex
r | # | "~ '~ | |
shellscript fish | # | "~ '~ ` | ${ $( | shell ends
powershell | # <#..#> | "~ '~ | $( | shell
nushell tcl awk just | # | "~ | | shell
makefile | # | | $( ${ | tabs
cmake nginx puppet | # | "~ ' | |
dockerfile ignore dotenv | # | " ' | | shell
yaml dockercompose | # | " ' | | indented data colons
toml | # | """~ \'\'\'~ " ' | | data
ini properties meson | # ; | " | | data
terraform hcl bicep | # // /*..*/ | " ' | ${ |
nix | # /*..*/ | \'\'~ "~ | ${ |
lua | -- --[[..]] | " ' | | ends
haskell elm purescript | -- {-..-} | " c | | indented
ada vhdl | -- | " c | |
applescript | -- (*..*) | " | |
ocaml sml | (*..*) | "~ c | |
fsharp | // (*..*) | """~ " c | | indented
pascal | // (*..*) {..} | ' | |
clojure lisp scheme racket wat | ; | "~ | |
asm llvm | ; # // | " | |
erlang prolog | % | "~ ' | |
matlab | % | " | | ends
fortran | ! | " ' | | ends
vb | ' | " | | ends
bat | rem :: | " | |
viml | | " ' | | ends
systemverilog verilog | // /*..*/ | " | |
cobol abap | * | " ' | |
html heex php | <!--..--> | | | markup
xml xsl svg | <!--..--> | | | markup
vue svelte blade | <!--..--> | | | markup
erb ejs jinja liquid handlebars smarty razor go-template | <!--..--> {#..#} {{!..}} <%#..%> | | | markup
pug haml slim sass | // | " ' | | indented
markdown mdx rmd quarto | <!--..--> | | | prose fences
latex tex bibtex | % | | | prose
restructuredtext asciidoc org mediawiki | | | | prose
typst | // /*..*/ | " | | prose fences
git-commit git-rebase | # | | | prose
plaintext csv log diff po mermaid | | | | prose
gherkin robot | # | " | | indented
'''


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of one language.

    `comments` end with their line, `blocks` at their second mark. `long` are the quotes that may span lines.
    `holes` open code within a string.
    """

    comments: tuple[str, ...] = ()
    blocks: tuple[tuple[str, str], ...] = ()
    quotes: tuple[str, ...] = ('"', "'")
    long: frozenset[str] = frozenset()
    holes: tuple[str, ...] = ()
    traits: frozenset[str] = frozenset()

    @property
    def is_prose(self) -> bool:
        """Whether it is text, and no code."""
        return "prose" in self.traits

    @property
    def is_markup(self) -> bool:
        """Whether elements stand in it."""
        return "markup" in self.traits


def _row(row: str) -> tuple[list[str], Marks]:
    names, comments, quotes, holes, traits = (column.split() for column in row.split("|"))
    quotes = [quote.replace("\\", "") for quote in quotes]
    blocks = tuple((first, last) for first, _, last in (mark.partition("..") for mark in comments) if last)
    return names, Marks(
        tuple(mark for mark in comments if ".." not in mark),
        blocks,
        tuple(quote.rstrip("~") for quote in quotes),
        frozenset(quote[:-1] for quote in quotes if quote.endswith("~")),
        tuple(holes),
        frozenset(traits),
    )


_BY_NAME = {name: marks for names, marks in map(_row, _TABLE.strip().splitlines()) for name in names}
_UNKNOWN = Marks()


@lru_cache(maxsize=256)
def marks_of(language: str) -> Marks:
    """Return the marks of a language, whatever an editor calls it."""
    return _BY_NAME.get(language) or _BY_NAME.get(canonical_language(language), _UNKNOWN)
