"""Recall of redaction on the test corpora of other detectors of secrets.

    python -m tests.quality.outside_recall FOLDER

FOLDER is a checkout of gitleaks or of kingfisher. Their rules have examples, in Go and in YAML; the secret
of an example is what the rule's own pattern finds in it. Examples that this reader cannot evaluate are left
out. The last line leaves out those that no service makes: they run through the alphabet or the digits.
"""

from __future__ import annotations

import ast
import random
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import re2
import yaml

from ngram_cache.redaction import blank_secrets, has_private_key

_RULES = "cmd/generate/config/rules"
_YAML_RULES = "data/rules"
_EXAMPLES = re.compile(r"\btps\s*:?=\s*(?:append\(tps,\s*)?(.*?)\n\t(?:return|fps|\})", re.DOTALL)
_RULE_ID = re.compile(r'RuleID:\s*"([^"]+)"')
_STRING = re.compile(r'`[^`]*`|"(?:[^"\\\n]|\\.)*"')
_DRAWN = re.compile(r'secrets\.NewSecret\(utils\.(\w+)\("(\d+)"\)\)')
_SAMPLES = re.compile(
    r'utils\.GenerateSampleSecrets?\(\s*"([^"]+)",\s*(?:secret|' + _DRAWN.pattern + r")\s*\)"
)
_PIECE = re.compile(rf"({_STRING.pattern})|{_DRAWN.pattern}")
_COMMENT = re.compile(r"(?m)(?<![:\"'`\w])//[^\n]*")
_SAMPLE = '{i}_token = "{s}"'
_LETTERS = {
    "Hex": "0123456789abcdef",
    "Numeric": "0123456789",
    "AlphaNumeric": "abcdefghijklmnopqrstuvwxyz0123456789",
    "AlphaNumericExtended": "abcdefghijklmnopqrstuvwxyz0123456789_=-",
    "AlphaNumericExtendedShort": "abcdefghijklmnopqrstuvwxyz0123456789_-",
    "AlphaNumericExtendedLong": "abcdefghijklmnopqrstuvwxyz0123456789/_+=-",
}
_WINDOW = 8


class Outside(NamedTuple):
    """An example of a rule, and the secret that its pattern finds."""

    rule: str
    text: str
    secret: str


def examples(folder: Path) -> Iterator[Outside]:
    """Every example whose secret is known, the same ones each time."""
    return _in_yaml(folder / _YAML_RULES) if (folder / _YAML_RULES).is_dir() else _in_go(folder)


def _in_yaml(folder: Path) -> Iterator[Outside]:
    """The examples of kingfisher, without those of rules whose findings it does not show as secrets."""
    for file in sorted(folder.glob("*.yml")):
        for rule in yaml.safe_load(file.read_text("utf-8"))["rules"]:
            for text in rule.get("examples", ()) if rule.get("visible", True) else ():
                if secret := _found_in(text, rule["pattern"]):
                    yield Outside(rule["id"], text, secret)


def _found_in(text: str, pattern: str) -> str:
    try:
        found = re.search(pattern.strip(), text)
    except re.error:
        return ""
    if found is None:
        return ""
    # Names of users and hosts stand before their secrets.
    return next(filter(None, (found.groupdict().get("TOKEN"), *reversed(found.groups()), found[0])))


def _in_go(folder: Path) -> Iterator[Outside]:
    told = tomllib.loads((folder / "config/gitleaks.toml").read_text("utf-8"))["rules"]
    rules = {rule["id"]: rule for rule in told if "regex" in rule}
    generator = random.Random(0)  # noqa: S311 - the same secrets every time
    for file in sorted((folder / _RULES).glob("*.go")):
        for function in file.read_text("utf-8").split("\nfunc ")[1:]:
            found, listed = _RULE_ID.search(function), _EXAMPLES.search(function)
            if found and listed and found[1] in rules:
                rule = rules[found[1]]
                for text in _texts(_COMMENT.sub("", listed[1]), generator):
                    if secret := _secret_in(text, rule):
                        yield Outside(found[1], text, secret)


def _texts(source: str, generator: random.Random) -> Iterator[str]:
    """The strings of a list of Go: literals, drawn secrets, and sums of both."""

    def drawn(kind: str, length: str) -> str:
        return "".join(generator.choices(_LETTERS[kind], k=int(length))) if kind in _LETTERS else ""

    for found in _SAMPLES.finditer(source):
        if found[2]:
            yield _SAMPLE.format(i=found[1], s=drawn(found[2], found[3]))
    rest = _SAMPLES.sub("", source)
    for element in re.split(r",[ \t]*(?:\n|$)|,\s*(?=[\"`])", rest):
        pieces = [
            _literal(piece[1]) if piece[1] else drawn(piece[2], piece[3])
            for piece in _PIECE.finditer(element)
        ]
        if pieces and all(pieces) and not re.search(r"\w\(", _PIECE.sub("", element)):
            yield "".join(pieces)


def _literal(source: str) -> str:
    if source.startswith("`"):
        return source[1:-1]
    try:
        return str(ast.literal_eval(source))
    except (SyntaxError, ValueError):
        return ""


def _secret_in(text: str, rule: dict[str, object]) -> str:
    try:
        found = re2.search(str(rule["regex"]), text)
    except re2.error:
        return ""
    if found is None:
        return ""
    group = int(str(rule.get("secretGroup", 0)))
    groups = [part for part in found.groups() if part]
    return str(found[group] if group else groups[0] if groups else found[0])


def num_left(example: Outside) -> int:
    """The longest run of the secret's characters that redaction leaves."""
    left = "" if has_private_key(example.text) else blank_secrets(example.text)
    secret, longest = example.secret, 0
    for start in range(len(secret)):
        while secret[start : start + longest + 1] in left and start + longest < len(secret):
            longest += 1
    return longest


def is_made_up(secret: str) -> bool:
    """Whether six characters follow each other in the alphabet or among the digits."""
    steps = "".join("1" if ord(b) - ord(a) == 1 else " " for a, b in pairwise(secret.lower()))
    return "11111" in steps


def main() -> None:
    """Print the rules with leaks, and the recall."""
    found = list(examples(Path(sys.argv[1])))
    runs = [num_left(example) for example in found]
    shown = [run >= min(_WINDOW, len(example.secret)) for run, example in zip(runs, found, strict=True)]
    lost = [2 * run >= len(example.secret) for run, example in zip(runs, found, strict=True)]
    totals, left = Counter(one.rule for one in found), Counter[str]()
    left.update(one.rule for one, is_lost in zip(found, lost, strict=True) if is_lost)
    for rule, number in left.most_common():
        print(f"{rule:<44}{number:>4} of {totals[rule]}")  # noqa: T201 - a command speaks
    print(f"{len(found)} secrets of {len(totals)} rules")  # noqa: T201 - as above
    for what, flags in (("a run of eight characters", shown), ("half of the secret", lost)):
        print(f"recall {1 - sum(flags) / len(found):.1%}, if {what} may not be left")  # noqa: T201 - as above
    drawn = [is_lost for one, is_lost in zip(found, lost, strict=True) if not is_made_up(one.secret)]
    print(f"recall {1 - sum(drawn) / len(drawn):.1%} of {len(drawn)} that are not made up, if half")  # noqa: T201 - as above


if __name__ == "__main__":
    main()
