"""Which consecutive releases are compared: the sources before and after, by package. Plain values.

All are younger than the default model (September 2024), under permissive licences.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.benchmarks.releases import Origin, Release


@dataclass(frozen=True, slots=True)
class ReleasePair:
    """Two releases of one package, and the language of the files that are read in them."""

    language: str
    before: Release
    after: Release

    @property
    def name(self) -> str:
        """The package and both versions."""
        version = self.after.requirement.removeprefix("@").replace("@", "==").rpartition("==")[2]
        return f"{self.before.requirement} to {version}"


def _pair(
    language: str,
    origin: Origin,
    name: str,
    versions: tuple[str, str],
    hashes: tuple[str, str],
    folder: str = "",
) -> ReleasePair:
    sign = "@" if origin == "npm" else "=="
    before, after = (
        Release(origin, f"{name}{sign}{version}", sha256, folder)
        for version, sha256 in zip(versions, hashes, strict=True)
    )
    return ReleasePair(language, before, after)


PAIRS = (
    _pair("python", "wheel", "cyclopts", ("5.4.0", "5.5.2"), ("", "")),
    _pair("python", "wheel", "mcp", ("2.2.0", "2.3.0"), ("", "")),
    _pair("python", "wheel", "openai-agents", ("0.23.1", "0.24.0"), ("", "")),
    _pair("python", "wheel", "smolagents", ("1.25.0", "1.26.0"), ("", "")),
    _pair("python", "wheel", "a2a-sdk", ("1.2.3", "1.3.0"), ("", "")),
    _pair("python", "wheel", "inline-snapshot", ("0.35.4", "0.36.0"), ("", "")),
    _pair("typescript", "npm", "@tanstack/db", ("0.14.0", "0.15.0"), ("", ""), "src"),
    _pair("typescript", "npm", "@tanstack/router-core", ("1.171.33", "1.171.39"), ("", ""), "src"),
    _pair("typescript", "npm", "ai", ("7.0.166", "7.0.173"), ("", ""), "src"),
    _pair("javascript", "npm", "undici", ("8.12.4", "8.13.1"), ("", ""), "lib"),
    _pair("javascript", "npm", "fastify", ("5.11.0", "5.12.0"), ("", ""), "lib"),
    _pair("rust", "source", "zizmor", ("1.31.1", "1.32.0"), ("", ""), "crates"),
    _pair("rust", "source", "prek", ("0.5.10", "0.5.11"), ("", ""), "crates"),
    _pair("go", "source", "wandb", ("0.30.0", "0.31.0"), ("", ""), "core/internal"),
)
