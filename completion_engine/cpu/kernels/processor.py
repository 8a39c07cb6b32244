"""The instructions of this processor that the compiler can use.

LLVM finds them out by itself on x86. ARM's products of bytes it does not find on every system, so the system
is asked: Linux by `getauxval`, macOS by `sysctlbyname`, Windows by `IsProcessorFeaturePresent`. numba's own
variables override all of that: `NUMBA_CPU_FEATURES`, and `NUMBA_CPU_NAME=generic`, which has none.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable
from functools import cache

from numba import config
from numba.core.codegen import get_host_cpu_features

DOT, MATRIX = "dotprod", "i8mm"  # as LLVM names them: `sdot`, and `smmla`

_ARM = frozenset({"arm64", "aarch64"})
# Which word of Linux's auxiliary vector says it, and the bit: HWCAP_ASIMDDP, HWCAP2_I8MM.
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
    return frozenset(name[1:] for name in _told().split(",") if name.startswith("+"))


def tell_compiler() -> None:
    """Have numba compile for what the system reports of an ARM processor; before it compiles anything."""
    if is_arm() and config.CPU_FEATURES is None and config.CPU_NAME is None:  # type: ignore[attr-defined]  # set by name
        found = {f"+{name}" for name in reported(sys.platform)}
        config.CPU_FEATURES = ",".join(filter(None, (_told(), *sorted(found))))  # type: ignore[attr-defined]  # as above


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


def _told() -> str:
    named = config.CPU_FEATURES  # type: ignore[attr-defined]  # set by name; "" names none
    return str(get_host_cpu_features() if named is None else named)
