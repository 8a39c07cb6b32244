"""Run as `python -m tests.fuzz [repository|protocol|models ...] [--inputs N] [--seconds S] [--seed TEXT]`.

Each kind of input gets an equal share of both. Exits with 1 where an input breaks its oracle; it is named by
its seed, and `--seed` with `--inputs 1` runs it again.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys

from tests.fuzz.driver import Budget, run_kind

GROUPS = {
    "repository": ("settings_files", "ignore_rules", "trees", "snapshots"),
    "protocol": ("frames", "conversations"),
    "models": ("model_folders",),
}


def main() -> int:
    """All kinds of the chosen groups, a line of JSON for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], default=[])
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", default="0")
    options = parser.parse_args()
    kinds = [kind for group in options.groups or GROUPS for kind in GROUPS[group]]
    budget = Budget(max(1, options.inputs // len(kinds)), options.seconds / len(kinds))
    num_failed = 0
    for kind in kinds:
        check = importlib.import_module(f"tests.fuzz.{kind}").check
        result = run_kind(kind, check, budget, options.seed)
        sys.stdout.write(json.dumps(result.as_dict()) + "\n")
        sys.stdout.flush()
        num_failed += len(result.failures)
    return 1 if num_failed else 0


if __name__ == "__main__":
    sys.exit(main())
