"""The address of a team's servers, by the settings: the URL, the bearer token, the certificates to trust.

Owns the checks of the settings. Reads two files, opens no connection.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from completion_engine.errors import UserError

_MAX_TOKEN_BYTES = 4096
_PORTS = {"https": 443, "http": 80}
_VISIBLE = range(0x21, 0x7F)


@dataclass(frozen=True, slots=True)
class RemoteConfig:
    """`url` of the servers, and the files with the bearer token and the certificates to trust, if any.

    `model` is the servers' name of the target; empty for the first that they list. `tokenizer` is a folder
    with its `tokenizer.json`; empty if the local target's is the same. `prefix_chars`, `suffix_chars` and
    `context_tokens` are as in `EngineConfig`.
    """

    url: str
    token_file: str = ""
    ca_file: str = ""
    model: str = ""
    tokenizer: str = ""
    prefix_chars: int = 0
    suffix_chars: int = 0
    context_tokens: int = -1


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Host, port, the path before that of each request, and the credentials.

    `tls` is None for clear text, which is allowed on the loopback only.
    """

    host: str
    port: int
    path: str = ""
    token: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = None

    @classmethod
    def of(cls, config: RemoteConfig) -> Endpoint:
        """Return the endpoint that the settings name. Raises UserError with the fault."""
        host, port, path, is_tls = _parsed(config.url)
        token = read_token(Path(config.token_file).expanduser()) if config.token_file else ""
        return cls(host, port, path, token, _tls(config.ca_file) if is_tls else None)

    @property
    def authority(self) -> str:
        """The value for requests."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def scheme(self) -> str:
        """The value for requests."""
        return "http" if self.tls is None else "https"


def _parsed(url: str) -> tuple[str, int, str, bool]:
    """Return host, port, path and whether TLS is used."""
    advice = "Set remote.url to an address like https://models.example.org."
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UserError(f"remote.url {url[:100]!r} is not a URL: {error}.", advice=advice) from error
    host = parts.hostname or ""
    is_plain = not (parts.query or parts.fragment or parts.username or parts.password)
    if parts.scheme not in _PORTS or not host or not is_plain or not host.isascii():
        raise UserError(
            f"remote.url {_shown(url)!r} is not https://HOST, with a port or a path.", advice=advice
        )
    if parts.scheme == "http" and not _is_loopback(host):
        raise UserError(
            f"remote.url {_shown(url)!r} would send your text unencrypted.",
            advice="Use https://. Plain http:// is only for servers on this machine.",
        )
    path = quote(parts.path.rstrip("/").removesuffix("/v1"), safe="/%:@!$&'()*+,;=")
    return host, _PORTS[parts.scheme] if port is None else port, path, parts.scheme == "https"


def _shown(url: str) -> str:
    """Return a URL for messages, without the part that may hold a password."""
    return url.rpartition("@")[2][:100]


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_token(path: Path) -> str:
    """Read the bearer token from a file that only its user may read. Raises UserError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(file.fileno())
            _check_private(path, facts)
            data = file.read(_MAX_TOKEN_BYTES + 1)
    except OSError as error:
        raise UserError(
            f"The token file {path} cannot be read: {error.strerror}.", advice="Correct remote.tokenFile."
        ) from error
    token = data.strip()
    if not token or len(data) > _MAX_TOKEN_BYTES or any(byte not in _VISIBLE for byte in token):
        raise UserError(
            f"The token file {path} does not hold one token.",
            advice="It must hold the token alone, on one line.",
        )
    return token.decode("ascii")


def _check_private(path: Path, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise UserError(f"The token file {path} is not a regular file.", advice="Correct remote.tokenFile.")
    if sys.platform == "win32":
        return  # modes do not show there who may read
    if facts.st_uid != os.getuid():
        raise UserError(f"The token file {path} belongs to another user.", advice="Make a copy of your own.")
    if facts.st_mode & 0o077:
        raise UserError(
            f"Other users can read the token file {path} (mode {stat.S_IMODE(facts.st_mode):04o}).",
            advice=f"Run: chmod 600 {path}",
        )


def _tls(ca_file: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=str(Path(ca_file).expanduser()) if ca_file else None)
    except (OSError, ssl.SSLError) as error:
        raise UserError(
            f"The certificates in {ca_file} cannot be read: {error}.",
            advice="remote.caFile must name a PEM file of certificates.",
        ) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
