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
    _pair(
        "python",
        "wheel",
        "cyclopts",
        ("5.4.0", "5.5.2"),
        (
            "29a4639849e9161f64bce7904c787b85f6a8accfb08cd675ad70b7753af57e81",
            "4fbe863ebace1c65dafc6520c82217915b103d27fbd1d8fcd168f2abcca3a12a",
        ),
    ),
    _pair(
        "python",
        "wheel",
        "mcp",
        ("2.2.0", "2.3.0"),
        (
            "bde982589473a060ae145e3406e9a5333fe538c97229ba841f5a7f92be004f81",
            "dd0c44c089d16453e8ae31a3877a0054d7a2314caaa81f5e0541b9b1734b2377",
        ),
    ),
    _pair(
        "python",
        "wheel",
        "openai-agents",
        ("0.23.1", "0.24.0"),
        (
            "0183e6da7370df80f7cf900379d9f113e664e32b426f51aa7486c9091faf8f2d",
            "18d4ac34e84ed937333ec8ce46395ed3521ffcbb0a521780a4c2eaa451467f49",
        ),
    ),
    _pair(
        "python",
        "wheel",
        "smolagents",
        ("1.25.0", "1.26.0"),
        (
            "fbb6716ef9ff164c9ca6238d8bd2559736c9e171a21443e2c61c400d443bdcde",
            "70e1cfb1576f782da93190ee31d9bb2659e5ca4bd84fda0c412e1f20498f28b6",
        ),
    ),
    _pair(
        "python",
        "wheel",
        "a2a-sdk",
        ("1.2.3", "1.3.0"),
        (
            "a89529ab7d026900170aefc1515f35c68d9a14b6a9133f8cc775c8fe598f8ae7",
            "b94a73b5dc7ff1afe5f11d324480f83386a64d02b8a6b719baf013595284cc6c",
        ),
    ),
    _pair(
        "python",
        "wheel",
        "inline-snapshot",
        ("0.35.4", "0.36.0"),
        (
            "0ad221c1bc6fe4ce249f7c1c4131284099ecac1a5c1023aa7b1a95921c07265d",
            "1079cf302098fedb418c7ac2be9cadd14f2e71461143bcaf605be1214530bef4",
        ),
    ),
    _pair(
        "typescript",
        "npm",
        "@tanstack/db",
        ("0.14.0", "0.15.0"),
        (
            "e079ab12ba238dc1665147da2d389d1da7a9ecf405985cefd9523d4c070967a8",
            "b523586617aecf2835bd420eadc298c2dd4eb36ccbf048c1da241e962bd2d216",
        ),
        "src",
    ),
    _pair(
        "typescript",
        "npm",
        "@tanstack/router-core",
        ("1.171.33", "1.171.39"),
        (
            "547f0c8641c7424287868201d340cffae21dc6844f351de06336c8638415a313",
            "0c9345f2830bda69901d464a293d101f10635d3c935f7f1e310681b71bd2e962",
        ),
        "src",
    ),
    _pair(
        "typescript",
        "npm",
        "ai",
        ("7.0.166", "7.0.173"),
        (
            "22eee048ea006aac472514e4de887aa4e6f7f2ea4ad06b80b317b1c16ddf1c92",
            "9bb39977ac3471c0dfd2a541f3d03390eefd8a68140f07020d169d9d72667a2e",
        ),
        "src",
    ),
    _pair(
        "javascript",
        "npm",
        "undici",
        ("8.12.4", "8.13.1"),
        ("26058cdb2174623666e823e6b44ccfef8d5c1955107f979b8083904b61a0ce6e", ""),
        "lib",
    ),
    _pair("javascript", "npm", "fastify", ("5.11.0", "5.12.0"), ("", ""), "lib"),
    _pair(
        "python",
        "wheel",
        "langgraph",
        ("1.2.20", "1.2.24"),
        (
            "2b9fd01c3d5e0652e6c9b436dc0341413788010eb279ac8c46a733cf485d848b",
            "312f9a75c1aa0dde5571da32c5c24b891e726fa9781b835b956ec6d9746fa943",
        ),
    ),
    _pair(
        "typescript",
        "npm",
        "effect",
        ("4.0.6", "4.1.0"),
        (
            "a36d2862f3658f1999c72103ae46827c28427a52f704cacd6ea10ea7407eb75d",
            "41705a35c964192dfc742863f0e099727ccda7ff2bd67a06d09b093a336f2b0e",
        ),
        "src",
    ),
    _pair(
        "javascript",
        "npm",
        "svelte",
        ("5.56.10", "5.57.3"),
        (
            "5ada56757780fbacdb5959ead0e9c724ec02520d42fed5d0a95995cf1ab1ff2e",
            "afda776761670addcd6f4345c1b4b0665c8dd11b82961cbfee9696d5d9f4546a",
        ),
        "src",
    ),
    _pair("rust", "source", "uv", ("0.13.8", "0.13.9"), ("", ""), "crates"),
    _pair("rust", "source", "maturin", ("1.15.0", "1.16.0"), ("", ""), "src"),
    _pair("rust", "source", "zizmor", ("1.31.1", "1.32.0"), ("", ""), "crates"),
    _pair("rust", "source", "prek", ("0.5.10", "0.5.11"), ("", ""), "crates"),
    _pair("go", "source", "wandb", ("0.30.0", "0.31.0"), ("", ""), "core/internal"),
)

# The weights that are shipped were fitted on these packages.
FITTED = frozenset(
    pair.name
    for pair in PAIRS
    if pair.after.project in ("a2a_sdk", "inline_snapshot", "undici", "zizmor", "prek", "wandb")
)
