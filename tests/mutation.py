"""The results of the last `make mutation`, as the table and the list in docs/mutation.md.

Reads the records that mutmut leaves under mutants/.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
KILLED = {1, 3, -24, 24, 36, 152, 255}  # a failing test, an error in one, a time-out


def main() -> int:
    """Print both; returns 1 where a file has fewer than 85 % of its tried mutants killed."""
    is_enough = True
    survivors: list[str] = []
    print("| file | mutants | killed | share |\n| --- | ---: | ---: | ---: |")  # noqa: T201 - the report
    for record in sorted((ROOT / "mutants").rglob("*.meta")):
        tried = json.loads(record.read_text())["exit_code_by_key"].items()
        codes = {name: code for name, code in tried if code is not None}
        if not codes:
            continue
        counts = Counter(code in KILLED for code in codes.values())
        survivors += [name for name, code in codes.items() if code not in KILLED]
        share = counts[True] / len(codes)
        is_enough &= share >= 0.85
        file = record.relative_to(ROOT / "mutants").with_suffix("")
        print(f"| `{file}` | {len(codes)} | {counts[True]} | {share:.0%} |")  # noqa: T201
    print("\n" + "\n".join(f"- {name}" for name in survivors))  # noqa: T201
    return 0 if is_enough else 1


if __name__ == "__main__":
    sys.exit(main())
