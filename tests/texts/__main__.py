"""Writes all.txt: `python -m tests.texts`."""

from tests.texts.listing import FILE, whole

FILE.write_text(whole(), encoding="utf-8")
