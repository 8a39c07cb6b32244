"""The program that turns a GGUF file into bf16 safetensors; started as a child by `conversion`.

    python -m completion_engine.models.gguf_worker FILE.gguf OUT_FOLDER

A process of its own, so that the memory comes back, the model libraries' settings stay untouched, and
it can be ended at any moment. Knows transformers. Must not know the store. Speaks one JSON object a
line on stdout: {"step": name} when a step begins; {"fault": "data" or "machine", "error": text} at the
end when it failed.
"""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import Any, TextIO

MAX_VALUES = 8_000_000  # in a header; each takes some 200 bytes until it is converted
_SAMPLE = 'def Area(r: float) -> float:\n\treturn 3.14 * r  # "é 漢 🎉"\n'


def main() -> int:
    """Convert the file named by the arguments. Returns the exit code."""
    out, sys.stdout = sys.stdout, sys.stderr  # nothing that a library prints may mix with our lines
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    try:
        _convert(source, folder, out)
    except MemoryError:
        _say(out, fault="machine", error="there is not enough memory")
        return 1
    except Exception as error:
        # What the system refuses has a number; whatever else a library dislikes is the file's fault.
        is_system = (isinstance(error, OSError) and error.errno) or "No space left" in str(error)
        _say(out, fault="machine" if is_system else "data", error=_one_line(error))
        return 1
    return 0


def _convert(source: Path, folder: Path, out: TextIO) -> None:
    _say(out, step="weights")
    import torch  # noqa: PLC0415 - seconds, of which the first line should tell
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig  # noqa: PLC0415 - as above

    _read_once()
    model: Any = AutoModelForCausalLM.from_pretrained(
        source.parent,
        gguf_file=source.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
        local_files_only=True,
    )
    _say(out, step="saving")
    model.save_pretrained(folder, max_shard_size="10TB")
    _say(out, step="tokenizer")
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name, local_files_only=True)
    tokenizer.save_pretrained(folder)
    _say(out, step="checking")
    saved = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    check_tokenizer(saved, model.get_input_embeddings().weight.shape[0])


def _read_once() -> None:
    """Let the model library, which opens the file three times, parse it once."""
    import gguf  # noqa: PLC0415 - as above

    vars(gguf)["GGUFReader"] = functools.cache(plain_reader())


def plain_reader() -> Any:
    """The class that reads a GGUF file: fast, and no further than the file goes.

    Some 300,000 strings are read, through a memory map's slow slices as the library has it: 40 s for a
    vocabulary of 150,000 tokens, 6 s this way. The library takes what lies behind a file's end for nothing at
    all: it would read lists of 2**60 nothings, until the memory is full.
    """
    import gguf  # noqa: PLC0415 - as above
    import numpy as np  # noqa: PLC0415 - as above

    class PlainReader(gguf.GGUFReader):
        _num_values = 0

        @property
        def data(self) -> Any:
            return self._plain

        @data.setter
        def data(self, mapped: Any) -> None:
            self._plain = np.asarray(mapped)

        def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Any = None) -> Any:
            end = int(offset) + np.dtype(dtype).itemsize * int(count)
            if end > len(self._plain):
                raise ValueError("the file ends too early")
            return super()._get(offset, dtype, count, override_order)

        def _get_field_parts(self, orig_offs: int, raw_type: int) -> Any:
            self._num_values += 1
            if self._num_values > MAX_VALUES:
                raise ValueError(f"its header holds more than {MAX_VALUES:,} values")
            return super()._get_field_parts(orig_offs, raw_type)

    return PlainReader


def check_tokenizer(tokenizer: Any, num_rows: int) -> None:
    """Raise ValueError unless every id has a row of the embedding and text survives the tokenizer."""
    if len(tokenizer) > num_rows:
        raise ValueError(f"its tokenizer has {len(tokenizer)} tokens, its embedding only {num_rows} rows")
    ids = tokenizer.encode(_SAMPLE, add_special_tokens=False)
    if tokenizer.decode(ids, clean_up_tokenization_spaces=False).strip() != _SAMPLE.strip():
        raise ValueError("its tokenizer does not give back the text it was given")


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _say(out: TextIO, **message: str) -> None:
    print(json.dumps(message), file=out, flush=True)


if __name__ == "__main__":
    sys.exit(main())
