"""The endpoint: allowed URLs, and allowed owners of a token file."""

from __future__ import annotations

from pathlib import Path

import pytest

from completion_engine.errors import UserError
from completion_engine.remote.endpoint import Endpoint, RemoteConfig


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://models.example.org", ("models.example.org", 443, "", "models.example.org")),
        ("https://m.example.org:8443/team/v1/", ("m.example.org", 8443, "/team", "m.example.org:8443")),
        ("http://127.0.0.1:8000/v1", ("127.0.0.1", 8000, "", "127.0.0.1:8000")),
        ("http://[::1]:8000", ("::1", 8000, "", "[::1]:8000")),
        ("http://localhost", ("localhost", 80, "", "localhost")),
        ("http://localhost/größe a%20b", ("localhost", 80, "/gr%C3%B6%C3%9Fe%20a%20b", "localhost")),
    ],
)  # fmt: skip
def test_what_a_url_says(url: str, found: tuple[str, int, str, str]) -> None:
    endpoint = Endpoint.of(RemoteConfig(url))
    assert (endpoint.host, endpoint.port, endpoint.path, endpoint.authority) == found


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://models.example.org", "unencrypted"),
        ("http://10.0.0.1:8000", "unencrypted"),
        ("ftp://models.example.org", "is not https://HOST"),
        ("models.example.org", "is not https://HOST"),
        ("https://someone:password@models.example.org", "is not https://HOST"),
        ("https://models.example.org?token=1", "is not https://HOST"),
        ("https://models.example.org:99999", "is not a URL"),
        ("https://[::1", "is not a URL"),
    ],
)
def test_a_url_that_is_refused(url: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as failure:
        Endpoint.of(RemoteConfig(url))
    assert "password" not in str(failure.value)


def endpoint_with(path: Path) -> Endpoint:
    return Endpoint.of(RemoteConfig("http://localhost", token_file=str(path)))


def test_a_private_token_file_is_read_and_its_token_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("abc-123\n")
    file.chmod(0o600)
    endpoint = endpoint_with(file)
    assert endpoint.token == "abc-123"  # noqa: S105 - a test's
    assert "abc-123" not in repr(endpoint)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o777])
def test_a_token_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "token"
    file.write_text("abc-123\n")
    file.chmod(mode)
    with pytest.raises(UserError, match="chmod 600"):
        endpoint_with(file)


@pytest.mark.parametrize("text", ["", "two words", "ümlaut", "x" * 5000, "a\nb"])
def test_a_file_that_holds_no_token_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(UserError, match="does not hold one token"):
        endpoint_with(file)


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        endpoint_with(tmp_path / "none")
    with pytest.raises(UserError, match=r"regular file|cannot be read"):
        endpoint_with(tmp_path)
    with pytest.raises(UserError, match="certificates"):
        Endpoint.of(RemoteConfig("https://localhost", ca_file=str(tmp_path / "none")))
