"""A fleet of two replicas on this machine, held until Ctrl+C: `python -m tests.fleet [MODEL_FOLDER]`.

For measurements that want one, such as `python -m tests.benchmarks.remote`. Prints the settings of its users.
Serves the default target unless a model's folder is named.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import threading
from pathlib import Path

from completion_engine.config import DEFAULT_TARGET
from completion_engine.models import ModelStore
from tests.fleet.team import ADA, running_team


def main() -> None:
    """Start it, say where it is, and wait."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that the servers end too
    parser = argparse.ArgumentParser(description="Two vLLM replicas with HAProxy on this machine.")
    parser.add_argument(
        "model", type=Path, nargs="?", help="a model's folder; the default target unless said"
    )
    parser.add_argument("--cache", type=int, default=512, help="MiB of keys and values in each replica")
    arguments = parser.parse_args()
    model = arguments.model or ModelStore().ensure(DEFAULT_TARGET)
    with (
        tempfile.TemporaryDirectory(prefix="slipstream-fleet-") as folder,
        running_team(model, Path(folder), cache_bytes=arguments.cache << 20) as team,
    ):
        user = team.front.client(ADA)
        facts = {
            "url": user.url,
            "token_file": user.token_file,
            "ca_file": user.ca_file,
            "metrics": [f"{replica.url}/metrics" for replica in team.replicas],
        }
        sys.stdout.write(json.dumps(facts) + "\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
