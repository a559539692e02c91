# SPDX-License-Identifier: BSD-3-Clause
"""What a profiler sees of a call: a range by the name that other backends give it, with
the shapes of its input. Complex numbers are pairs there, as they travel.

A blocking call runs on its caller's thread, so its range is no asynchronous one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._C._profiler import _RecordFunctionFast
from torch.autograd import profiler

_NAMES = {
    "receive": "recv",
    "all_gather_v": "all_gather",
    "all_to_all_v": "all_to_all",
    "reduce_scatter_v": "reduce_scatter",
}


def wanted() -> bool:
    """Whether a profiler is on."""
    return profiler._is_profiler_enabled


def of(name: str, buffers: list[Any]) -> _RecordFunctionFast:
    """The range of calls with these buffers, a context; of a pair the first is input."""
    shown = []
    for buffer in buffers:
        first = buffer[0] if isinstance(buffer, tuple) and buffer else buffer
        if isinstance(first, Tensor):
            shown.append(torch.view_as_real(first) if first.is_complex() else first)
    return _RecordFunctionFast(f"raddle:{_NAMES.get(name, name)}", shown)
