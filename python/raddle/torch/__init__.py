# SPDX-License-Identifier: BSD-3-Clause
"""The backend: importing this registers "raddle" with torch.distributed.

    import raddle.torch
    import torch.distributed as dist

    dist.init_process_group("raddle")
"""

from __future__ import annotations

import os
import warnings
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from raddle import _library as rdl
from raddle.torch import _guarded
from raddle.torch._group import ProcessGroupRaddle
from raddle.torch._work import milliseconds
from raddle.torch._world import World

_TESTED = "2.13"
_DEFAULT_TIMEOUT = timedelta(minutes=30)


def _timeout_ms(timeout: timedelta) -> int:
    """0, the library's own default, where the program names none and the environment
    does."""
    if timeout == _DEFAULT_TIMEOUT and "RADDLE_TIMEOUT" in os.environ:
        return 0
    return milliseconds(timeout)


def _create(options: Any, backend_options: Any = None) -> ProcessGroupRaddle:
    """What init_process_group and new_group call on each member of the group."""
    timeout_ms = _timeout_ms(options.timeout)
    default = dist.group.WORLD
    ranks = list(options.global_ranks_in_group)
    if ranks and isinstance(default, ProcessGroupRaddle):
        return ProcessGroupRaddle(default.raddle_world, ranks, options.group_id,
                                  options.group_rank, timeout_ms, options.store, False)
    world = World(options.store, options.group_rank, options.group_size, timeout_ms,
                  is_default=not ranks)
    return ProcessGroupRaddle(world, range(options.group_size), options.group_id,
                              options.group_rank, timeout_ms, options.store, True)


def account(group: dist.ProcessGroup | None = None) -> dict[str, Any]:
    """What this rank has taken, in bytes and pieces: the fields of rdl_account."""
    group = group or dist.group.WORLD
    if not isinstance(group, ProcessGroupRaddle):
        raise ValueError("raddle: account: the group is not one of raddle's")
    read = group.raddle_world.account()
    result: dict[str, Any] = {}
    for name, kind in rdl.Account._fields_:
        value = getattr(read, name)
        if kind is rdl.AccountArena:
            value = {part: getattr(value, part) for part in rdl.ARENA_PARTS}
        result[name] = value
    result["dev_shm_peak_bytes"] = read.dev_shm_bytes
    return result


if torch.__version__.split(".")[:2] != _TESTED.split("."):
    warnings.warn(f"raddle.torch was tested with PyTorch {_TESTED}, and this is "
                  f"{torch.__version__}", stacklevel=2)
rdl.library()  # what is wrong with it shall be said here
_guarded.install()
dist.Backend.register_backend("raddle", _create, extended_api=True, devices=["cpu"])

__all__ = ["ProcessGroupRaddle", "account"]
