"""The front of a fleet: HAProxy on the very configuration of the documents, with a certificate made for it.

Owns the variables of that configuration, the certificate and the users' tokens.
"""

from __future__ import annotations

import hashlib
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from completion_engine.remote.endpoint import RemoteConfig
from tests.fleet.processes import ServerProcess, free_port
from tests.parts import FLEET, ROOT

CONFIGURATION = ROOT / "docs" / "fleet" / "haproxy.cfg"
PLENTY = 1_000_000  # a quota that no test reaches


@dataclass(frozen=True, slots=True)
class Certificate:
    """Made by ourselves for the loopback: `ca` is what a client trusts, `pem` what a server shows."""

    ca: Path
    pem: Path

    @classmethod
    def make(cls, folder: Path) -> Certificate:
        """A new one, by OpenSSL's program."""
        key, ca, pem = folder / "key.pem", folder / "ca.pem", folder / "server.pem"
        names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
        command = (
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
        )
        arguments = [*command.split(), "-addext", names, "-keyout", str(key), "-out", str(ca)]
        subprocess.run(arguments, check=True, capture_output=True)
        pem.write_text(ca.read_text() + key.read_text())
        return cls(ca, pem)


class Front(ServerProcess):
    """HAProxy before two replicas, HOST:PORT each, for `users`: their names by their tokens."""

    def __init__(
        self, folder: Path, replicas: Sequence[str], users: Mapping[str, str], *, quota: int = PLENTY
    ) -> None:
        self._folder = folder
        self.port, status = free_port(), free_port()
        self.certificate = Certificate.make(folder)
        tokens = folder / "tokens"
        lines = (f"{hashlib.sha256(token.encode()).hexdigest()} {user}\n" for token, user in users.items())
        tokens.write_text("".join(lines))
        env = {
            "FLEET_BIND": f"127.0.0.1:{self.port}",
            "FLEET_CERTIFICATE": str(self.certificate.pem),
            "FLEET_TOKENS": str(tokens),
            "FLEET_QUOTA": str(quota),
            "FLEET_STATUS": f"127.0.0.1:{status}",
            "FLEET_REPLICA_1": replicas[0],
            "FLEET_REPLICA_2": replicas[1],
        }
        program = FLEET.find("haproxy", "haproxy")
        super().__init__(
            [str(program), "-f", str(CONFIGURATION)], env, f"http://127.0.0.1:{status}", folder / "front.log"
        )
        self.wait_until_ready("/metrics")

    def client(self, token: str) -> RemoteConfig:
        """What a user's settings say."""
        file = self._folder / f"token-{hashlib.sha256(token.encode()).hexdigest()[:8]}"
        if not file.exists():
            new = file.with_name(f"{file.name}-{threading.get_ident()}")
            new.touch(mode=0o600)
            new.write_text(token)
            new.replace(file)  # others may be reading it
        return RemoteConfig(f"https://localhost:{self.port}", str(file), str(self.certificate.ca), "target")

    def num_up(self) -> int:
        """Replicas that it sends requests to."""
        up = [line for line in self.read("/metrics").splitlines() if _is_up(line)]
        return len(up)


def _is_up(line: str) -> bool:
    kind = 'haproxy_server_status{proxy="replicas"'
    return line.startswith(kind) and 'state="UP"' in line and line.endswith(" 1")
