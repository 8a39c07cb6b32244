"""Run as `python -m tests.fuzz [repository|protocol|models ...] [--inputs N] [--seconds S] [--guided]`.

Each kind of input gets its share of both; those that cost more get fewer. `--guided` lets coverage choose
(atheris, which has to be installed). Exits with 1 where an input breaks its oracle; it is named by its seed,
and `--seed` with `--inputs 1` runs it again.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys

from tests.fuzz.driver import Budget, Result, run_kind
from tests.fuzz.guided import run_guided

# The share of inputs, in thousandths of a run of all.
GROUPS = {
    "repository": {
        "settings_files": 150,
        "ignore_rules": 150,
        "redaction": 125,
        "snapshots": 140,
        "trees": 15,
    },
    "protocol": {"frames": 200, "conversations": 25},
    "models": {"tokenizers": 85, "gguf_headers": 100, "model_folders": 10},
}


def main() -> int:
    """All kinds of the chosen groups, a line of JSON for each, and one for all."""
    options = _options()
    logging.disable(logging.CRITICAL)  # the server's messages for each input would take longer than the input
    shares = {kind: share for group in options.groups or GROUPS for kind, share in GROUPS[group].items()}
    total = sum(shares.values())
    results = []
    for kind, share in shares.items():
        budget = Budget(max(1, options.inputs * share // total), options.seconds / len(shares))
        results.append(_run(kind, budget, options))
        sys.stdout.write(json.dumps(results[-1].as_dict()) + "\n")
        sys.stdout.flush()
    num_failed = sum(len(result.failures) for result in results)
    num_inputs = sum(result.num_inputs for result in results)
    seconds = round(sum(result.seconds for result in results))
    sys.stdout.write(f"{num_inputs:,} inputs of {len(results)} kinds in {seconds} s, {num_failed} failures\n")
    return 1 if num_failed else 0


def _run(kind: str, budget: Budget, options: argparse.Namespace) -> Result:
    if options.guided:
        return run_guided(kind, budget, options.seed)
    return run_kind(kind, importlib.import_module(f"tests.fuzz.{kind}").check, budget, options.seed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], default=[])
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--guided", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
