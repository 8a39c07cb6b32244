"""What all kernels are written in: decorators for numba, arguments of kernels, bf16, shared functions, and
the instructions of this processor that the compiler can use.

Numbers in bf16 come as uint16, for numpy has no such type; kernels compute in float32. The compiler may
neither reorder nor fuse floats, so that every processor gives the same bits: fused operations use `fused`,
and sums those of `vectors`. numba compiles a kernel on its first call; `stored_kernels` says where the result
stays. Contains no kernel itself.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
import torch
from numba import config, njit, types
from numba.core.ccallback import CFunc
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic, overload
from numpy.typing import NDArray
from torch import Tensor

from completion_engine.cpu.kernels.stored_kernels import cache_of

DOT, MATRIX = "dotprod", "i8mm"  # as LLVM names them: `sdot`, and `smmla`

_ARM = frozenset({"arm64", "aarch64"})
# The word of Linux's auxiliary vector, and its bit: HWCAP_ASIMDDP, HWCAP2_I8MM.
_LINUX = {DOT: (16, 20), MATRIX: (26, 13)}
_MACOS = {DOT: b"hw.optional.arm.FEAT_DotProd", MATRIX: b"hw.optional.arm.FEAT_I8MM"}
# PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE, PF_ARM_V82_I8MM_INSTRUCTIONS_AVAILABLE
_WINDOWS = {DOT: 43, MATRIX: 66}


def is_arm(machine: str | None = None) -> bool:
    """Whether this is an ARM processor of 64 bits."""
    return (machine or platform.machine()).lower() in _ARM


@cache
def features() -> frozenset[str]:
    """Instructions that the compiler may use here, by LLVM's names."""
    return frozenset(name[1:] for name in _configured_features().split(",") if name.startswith("+"))


def set_compiler_features() -> None:
    """Have numba compile for what the system reports of an ARM processor; before it compiles anything."""
    if is_arm() and config.CPU_FEATURES is None and config.CPU_NAME is None:  # type: ignore[attr-defined]  # set by name
        found = {f"+{name}" for name in reported(sys.platform)}
        config.CPU_FEATURES = ",".join(filter(None, (_configured_features(), *sorted(found))))  # type: ignore[attr-defined]  # as above


def reported(system: str) -> frozenset[str]:
    """Which of ARM's products of bytes the system `sys.platform` reports; none where it cannot be asked."""
    ask = {"linux": on_linux, "darwin": on_macos, "win32": on_windows}.get(system)
    try:
        return ask() if ask else frozenset()
    except (AttributeError, OSError, TypeError):
        return frozenset()


def on_linux(getauxval: Callable[[int], int] | None = None) -> frozenset[str]:
    """What Linux reports; `getauxval` is the C library's by default."""
    if getauxval is None:
        getauxval = ctypes.CDLL(None).getauxval
        getauxval.argtypes, getauxval.restype = [ctypes.c_ulong], ctypes.c_ulong
    return frozenset(name for name, (word, bit) in _LINUX.items() if getauxval(word) >> bit & 1)


def on_macos(sysctl: Callable[[bytes], int] | None = None) -> frozenset[str]:
    """What macOS reports; `sysctl` gives a number by its name, 0 where there is none."""
    return frozenset(name for name, asked in _MACOS.items() if (sysctl or _sysctl)(asked))


def on_windows(is_present: Callable[[int], int] | None = None) -> frozenset[str]:
    """What Windows reports; `is_present` is the system's `IsProcessorFeaturePresent` by default."""
    if is_present is None:
        is_present = ctypes.WinDLL("kernel32").IsProcessorFeaturePresent  # type: ignore[attr-defined,unused-ignore]
    return frozenset(name for name, number in _WINDOWS.items() if is_present(number))


def _sysctl(name: bytes) -> int:
    found, size = ctypes.c_int64(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int64))
    failed = ctypes.CDLL(None).sysctlbyname(name, ctypes.byref(found), ctypes.byref(size), None, 0)
    return 0 if failed else found.value


def _configured_features() -> str:
    named = config.CPU_FEATURES  # type: ignore[attr-defined]  # set by name; "" names none
    return str(get_host_cpu_features() if named is None else named)


set_compiler_features()

LOWEST_RANK = np.int32(-0x7FFFFFFF)

Array = NDArray[Any]
Floats = NDArray[np.float32]
_P = ParamSpec("_P")
_R = TypeVar("_R")

_F32, _U32, _I32 = np.float32, np.uint32, np.int32
COUNTER = 0  # the place of the work that no thread has taken yet
FIRST_FIELD = 1
_Fields = TypeVar("_Fields", bound=NamedTuple)


def kernel(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """`function` on arrays, compiled; it runs without the interpreter's lock."""
    compiled: Any = njit(nogil=True, error_model="numpy")(function)
    compiled._cache = cache_of(function)
    result: Callable[_P, _R] = compiled
    return result


class SharedKernel:
    """A function on a pointer to integers that threads call all at once, compiled when it is first wanted."""

    def __init__(self, function: Callable[[Any], None]) -> None:
        self._function = function

    @cached_property
    def address(self) -> int:
        """Address of the compiled function."""
        signature = (types.CPointer(types.int64),), types.void
        compiled: Any = CFunc(self._function, signature, locals={}, options={"error_model": "numpy"})
        compiled._cache = cache_of(self._function)
        compiled.compile()
        return int(compiled.address)

    def run(self, task: Array) -> None:
        """Call it on this thread, which lets other threads of Python run meanwhile."""
        self._plain(task.ctypes.data)

    @cached_property
    def _plain(self) -> Callable[[int], None]:
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address)


def for_types(kernel_for: Callable[[int], SharedKernel]) -> dict[torch.dtype, SharedKernel]:
    """A kernel for each type that numbers are stored in; `kernel_for` gets the bytes of one."""
    return {torch.bfloat16: kernel_for(2), torch.float32: kernel_for(4)}


def inlined(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """`function` as a part of the kernels that call it."""
    compiled: Callable[_P, _R] = njit(inline="always", error_model="numpy")(function)
    return compiled


def array_of(tensor: Tensor) -> Array:
    """The memory of a CPU tensor as a kernel reads and writes it."""
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.uint16)
    array: Array = tensor.numpy()
    return array


def widened(number: Any) -> Any:
    """A stored number as float32; only within kernels."""
    raise NotImplementedError


def narrowed(number: Any, array: Any) -> Any:
    """A float32 as `array` stores numbers, the nearest, of two the even one; only within kernels."""
    raise NotImplementedError


@overload(widened, inline="always", strict=False)
def _widened(number: Any) -> Callable[[Any], Any]:
    if number == types.uint16:
        return lambda number: _U32(_U32(number) << _U32(16)).view(np.float32)
    return lambda number: number


@overload(narrowed, inline="always", strict=False)
def _narrowed(number: Any, array: Any) -> Callable[[Any, Any], Any]:  # noqa: ARG001 - named as what it replaces
    if array.dtype == types.uint16:
        return _nearest_bf16
    return lambda number, array: number  # noqa: ARG005 - as above


def _nearest_bf16(number: Any, array: Any) -> Any:  # noqa: ARG001 - as above
    bits = _F32(number).view(np.uint32)
    odd = _U32(_U32(bits >> _U32(16)) & _U32(1))
    return np.uint16(_U32(bits + _U32(0x7FFF) + odd) >> _U32(16))


def _typed_fused(_: Any, __: Any, ___: Any, ____: Any) -> Any:
    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float32(types.float32, types.float32, types.float32), generate


# `fused(left, right, added)` is `left * right + added` in float32, rounded once; only within kernels.
fused: Any = intrinsic(_typed_fused)


@inlined
def exponential(x: Any) -> Any:
    """e**x to 2e-7 of its size, between 2**-126 and 2**126.

    A power of two by its bits and a polynomial (Taylor's, fitted on half a power to either side).
    """
    power = min(max(x * _F32(1.44269504), _F32(-126.0)), _F32(126.0))
    whole = np.floor(power + _F32(0.5))
    part = power - whole
    y = _F32(1.5403530e-4)
    y = fused(y, part, _F32(1.3333558e-3))
    y = fused(y, part, _F32(9.6181291e-3))
    y = fused(y, part, _F32(5.5504109e-2))
    y = fused(y, part, _F32(2.4022651e-1))
    y = fused(y, part, _F32(6.9314718e-1))
    y = fused(y, part, _F32(1.0))
    return y * _U32(_U32(_I32(whole) + _I32(127)) << _U32(23)).view(np.float32)


@inlined
def magnitude(x: Any) -> Any:
    """The bits of |x|, which are ordered as the numbers are: the largest of many is found in vectors."""
    return _I32(_F32(x).view(np.int32) & _I32(0x7FFFFFFF))


@inlined
def rank_of(number: Any) -> Any:
    """A stored number as an integer that is ordered as the numbers are; both zeros are one."""
    wide = _F32(widened(number))
    sign = _I32(wide.view(np.int32) >> 31)
    return _I32(_I32(magnitude(wide) ^ sign) - sign)


@inlined
def number_of(rank: Any) -> Any:
    """The float32 of a rank."""
    sign = _I32(rank >> 31)
    return _I32(_I32(_I32(rank ^ sign) - sign) | _I32(sign << 31)).view(np.float32)


@inlined
def highest_rank(numbers: Any) -> Any:
    """The largest rank of some numbers, found in vectors; `LOWEST_RANK` where there are none."""
    top = LOWEST_RANK
    for at in range(numbers.shape[0]):
        rank = rank_of(numbers[at])
        top = _I32(max(top, rank))
    return top


def places(declaration: type[_Fields], first: int = FIRST_FIELD) -> _Fields:
    """Where each field lies, under the field's own name; `first` is the place of the first one.

    A declaration is a NamedTuple of integers. Python fills in one; a kernel reads `task[AT.name]`, where `AT`
    is the declaration's `places`. numba takes those for constants, so that a name costs what a number does.
    """
    return declaration._make(range(first, first + len(declaration._fields)))


def task_of(fields: Sequence[int]) -> NDArray[Any]:
    """A declaration filled in, as its kernel reads it: a counter that threads take work from goes before."""
    return np.array([0, *fields], np.int64)


def bits_of(number: float) -> int:
    """A float32 as a task holds it."""
    return int(np.float32(number).view(np.int32))
