"""`python -m tests.faults fairness [ATTACK ...]` or `table`: prints what it found; fails beyond a bound."""

from __future__ import annotations

import asyncio
import sys


def main(command: str, *names: str) -> int:
    """The exit code."""
    if command == "fairness":
        from tests.faults.fairness import report

        return 0 if asyncio.run(report(*names)) else 1
    if command == "table":
        from tests.faults.table import report as report_table

        return 0 if asyncio.run(report_table()) else 1
    sys.stderr.write("python -m tests.faults fairness [ATTACK ...] | table\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or [""])))
