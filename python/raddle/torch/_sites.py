# SPDX-License-Identifier: BSD-3-Clause
"""Call sites: the line of the program that a call comes from, as the library wants it.

The library keeps no copy of a site, so each text is kept here for ever: there are as many
as there are places in programs. A place is a code object and an offset in it, which costs
less to look up than a line number does to compute. Programs may make code as they go, so
what is known of code is forgotten now and then.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from types import CodeType, FrameType

import torch

_TORCH = os.path.dirname(torch.__file__) + os.sep
_RADDLE = os.path.dirname(os.path.dirname(__file__)) + os.sep
_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep
_PACKAGES = os.path.join(_STDLIB, "site-packages") + os.sep
# Wrappers that stand between a program and the call, and are never meant.
_WRAPPERS = ("typing_extensions.py", "distributed_c10d.py", "c10d_logger.py")

# How a frame is taken: for the program, for its libraries, or for the way to us.
PROGRAM, LIBRARY, WAY = range(3)

_kinds: dict[CodeType, int] = {}
_sites: dict[tuple[CodeType, int], bytes] = {}
_texts: dict[bytes, bytes] = {}
_KNOWN_MOST = 65536

NOWHERE = b"native code"


def _kind(code: CodeType) -> int:
    file = code.co_filename
    if file.startswith(_RADDLE) or file.endswith(_WRAPPERS):
        kind = WAY
    elif file.startswith(_TORCH) or file.startswith("<frozen"):
        kind = LIBRARY
    elif file.startswith(_STDLIB) and not file.startswith(_PACKAGES):
        kind = LIBRARY
    else:
        kind = PROGRAM
    if len(_kinds) >= _KNOWN_MOST:
        _kinds.clear()
    _kinds[code] = kind
    return kind


def _name(frame: FrameType) -> bytes:
    key = (frame.f_code, frame.f_lasti)
    site = _sites.get(key)
    if site is None:
        file = frame.f_code.co_filename
        if file.startswith(_TORCH):
            file = "torch/" + file[len(_TORCH):]
        else:
            file = os.path.relpath(file) if file.startswith(os.getcwd() + os.sep) else file
        site = f"{file}:{frame.f_lineno}".encode()
        site = _texts.setdefault(site, site)
        if len(_sites) >= _KNOWN_MOST:
            _sites.clear()
        _sites[key] = site
    return site


def here(_kinds_get=_kinds.get) -> bytes:
    """The program's line; where no program is, as on autograd's thread, the library's."""
    frame: FrameType | None = sys._getframe(1)
    nearest = None
    while frame is not None:
        kind = _kinds_get(frame.f_code)
        if kind is None:
            kind = _kind(frame.f_code)
        if kind == PROGRAM:
            return _name(frame)
        if kind == LIBRARY and nearest is None:
            nearest = frame
        frame = frame.f_back
    return NOWHERE if nearest is None else _name(nearest)
