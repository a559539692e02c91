# SPDX-License-Identifier: BSD-3-Clause
"""libraddle.so: where it is, its structs and its functions.

Threads: any. ctypes gives up the interpreter's lock during each call, and the sentence of
a failure belongs to the thread that made the call.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64
from ctypes import c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from raddle._version import VERSION

OK, AGAIN, INVALID, STATE, MISMATCH, UNSUPPORTED, NO_MEMORY, TIMEOUT, PEER, REVOKED = range(10)

# rdl_dtype
(UINT8, INT8, UINT16, INT16, UINT32, INT32, UINT64, INT64, BOOL, FLOAT16, BFLOAT16,
 FLOAT32, FLOAT64) = range(13)

# rdl_reduction
SUM, MIN, MAX, AVG, PRODUCT, BIT_AND, BIT_OR, BIT_XOR, PREMUL_SUM = range(9)


class Group(ctypes.Structure):
    """rdl_group"""

    _fields_ = [("index", c_uint32), ("generation", c_uint32), ("world", c_uint32)]


class Work(ctypes.Structure):
    """rdl_work"""

    _fields_ = [("index", c_uint32), ("generation", c_uint32), ("world", c_uint32)]


class Call(ctypes.Structure):
    """rdl_call; work is an address, of a Work that its maker keeps"""

    _fields_ = [
        ("timeout_ms", c_int64),
        ("caller", c_char_p),
        ("stream", c_void_p),
        ("work", c_void_p),
        ("batch", c_void_p),
        ("factor", c_double),
    ]


class WorldOptions(ctypes.Structure):
    """rdl_world_options"""

    _fields_ = [
        ("host", c_void_p),
        ("rank", c_int),
        ("size", c_int),
        ("job", c_char_p),
        ("start_timeout_ms", c_int64),
        ("timeout_ms", c_int64),
        ("check", c_int),
        ("works", c_int),
    ]


ARENA_PARTS = ("header", "state", "slots", "texts", "records", "staging", "heap")


class AccountArena(ctypes.Structure):
    """rdl_account_arena"""

    _fields_ = [(name, c_uint64) for name in ARENA_PARTS]


class Account(ctypes.Structure):
    """rdl_account"""

    _fields_ = [
        *((name, c_uint64) for name in (
            "groups_opened", "groups_open", "communicators", "lanes", "arena_bytes_rank",
            "arena_bytes_total", "dev_shm_bytes", "descriptors", "threads", "collectives",
            "heap_bytes", "heap_bytes_peak", "collectives_mapped")),
        ("arena_rank", AccountArena),
        ("arena_total", AccountArena),
        ("page_table_bytes", c_uint64),
        ("private_bytes", c_uint64),
        ("host_bytes", c_uint64),
    ]


def _places() -> list[Path]:
    """Where the library may be: as told, in the installed package, in a source tree."""
    told = os.environ.get("RADDLE_LIBRARY")
    if told:
        return [Path(told)]
    package = Path(__file__).resolve().parent
    return [package / "lib" / "libraddle.so",
            package.parents[1] / "build" / "release" / "libraddle.so"]


@cache
def library_path() -> str:
    """The file of the library. OSError says where it was looked for."""
    places = _places()
    for place in places:
        if place.exists():
            return str(place)
    raise OSError("libraddle.so was not found: it is at none of "
                  + ", ".join(map(str, places))
                  + "; build it (cmake --preset release; cmake --build build/release), or set "
                  "RADDLE_LIBRARY to it")


# What follows the world and the group in each call, and comes before rdl_call and site.
_COLLECTIVES = {
    "barrier": [],
    "broadcast": [c_void_p, c_size_t, c_int, c_int],
    "reduce": [c_void_p, c_void_p, c_size_t, c_int, c_int, c_int],
    "all_reduce": [c_void_p, c_void_p, c_size_t, c_int, c_int],
    "gather": [c_void_p, c_void_p, c_size_t, c_int, c_int],
    "scatter": [c_void_p, c_void_p, c_size_t, c_int, c_int],
    "all_gather": [c_void_p, c_void_p, c_size_t, c_int],
    "reduce_scatter": [c_void_p, c_void_p, c_size_t, c_int, c_int],
    "all_to_all": [c_void_p, c_void_p, c_size_t, c_int],
    "all_gather_v": [c_void_p, c_void_p, c_void_p, c_int],
    "reduce_scatter_v": [c_void_p, c_void_p, c_void_p, c_int, c_int],
    "all_to_all_v": [c_void_p, c_void_p, c_void_p, c_void_p, c_int],
    "send": [c_void_p, c_size_t, c_int, c_int],
    "receive": [c_void_p, c_size_t, c_int, c_int],
}

_OTHERS = {
    "rdl_world_open": [c_void_p, c_void_p],
    "rdl_world_close": [c_void_p],
    "rdl_group_open": [c_void_p, c_void_p, c_int, c_char_p, c_void_p],
    "rdl_group_close": [c_void_p, Group],
    "rdl_group_revoke_at": [c_void_p, Group, c_char_p],
    "rdl_work_wait_at": [c_void_p, Work, c_int64, c_char_p],
    "rdl_work_test": [c_void_p, Work, c_void_p],
    "rdl_work_revoke_at": [c_void_p, Work, c_char_p],
    "rdl_work_notify": [c_void_p, Work, c_int],
    "rdl_probe": [c_void_p, Group, c_int, c_void_p],
    "rdl_batch_begin": [c_void_p, c_void_p],
    "rdl_batch_end": [c_void_p, c_void_p],
    "rdl_account_read": [c_void_p, c_void_p],
}


def _declare(lib: ctypes.CDLL) -> None:
    for name, middle in _COLLECTIVES.items():
        function = getattr(lib, f"rdl_{name}_at")
        function.argtypes = [c_void_p, Group, *middle, c_void_p, c_char_p]
        function.restype = c_int
    for name, arguments in _OTHERS.items():
        function = getattr(lib, name)
        function.argtypes = arguments
        function.restype = c_int
    lib.rdl_world_abort.argtypes = [c_void_p, c_char_p]
    lib.rdl_world_abort.restype = None
    lib.rdl_world_leave.argtypes = [c_void_p]
    lib.rdl_world_leave.restype = None
    for name in ("rdl_world_rank", "rdl_world_size"):
        getattr(lib, name).argtypes = [c_void_p]
    for name in ("rdl_version", "rdl_error_detail"):
        getattr(lib, name).restype = c_char_p


@cache
def library() -> ctypes.CDLL:
    """The library, loaded once. ImportError: it is of another version."""
    lib = ctypes.CDLL(library_path())
    lib.rdl_version.restype = c_char_p
    found = lib.rdl_version().decode()
    if found != VERSION:
        raise ImportError(f"raddle for Python is {VERSION}, and the library "
                          f"{library_path()} is {found}: install them together")
    _declare(lib)
    return lib


@cache
def functions() -> dict[str, Any]:
    """The collectives and transfers by name, in the form that takes a call site."""
    return {name: getattr(library(), f"rdl_{name}_at") for name in _COLLECTIVES}


def version() -> str:
    """The version of the loaded library."""
    return library().rdl_version().decode()


def sentence() -> str:
    """Of the last call that failed on this thread."""
    return library().rdl_error_detail().decode(errors="replace")
