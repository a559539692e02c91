# SPDX-License-Identifier: BSD-3-Clause
"""Two functions of torch.distributed that it keeps to backends that it knows by name:
monitored_barrier to gloo, split_group to groups of a device that can split. Here they are
wrapped, for groups of raddle's alone; all other groups get what they got before.
"""

from __future__ import annotations

import functools
from datetime import timedelta
from typing import Any, Callable

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from raddle.torch._group import ProcessGroupRaddle


def _ours(group: Any) -> ProcessGroupRaddle | None:
    group = dist.group.WORLD if group is None else group
    return group if isinstance(group, ProcessGroupRaddle) else None


def _seconds(timeout: timedelta | float | None) -> timedelta | None:
    return timedelta(seconds=timeout) if isinstance(timeout, (int, float)) else timeout


def _monitored_barrier(original: Callable) -> Callable:
    @functools.wraps(original)
    def monitored_barrier(group: Any = None, timeout: Any = None,
                          wait_all_ranks: bool = False) -> None:
        ours = _ours(group)
        if ours is None:
            return original(group, timeout, wait_all_ranks)
        return ours.monitored_barrier(_seconds(timeout), wait_all_ranks)

    return monitored_barrier


def _check_split(split_ranks: Any) -> None:
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    seen: set[int] = set()
    for ranks in split_ranks:
        if not ranks:
            raise ValueError("raddle: split_group: one of the lists of ranks is empty")
        if len(set(ranks)) != len(ranks) or seen & set(ranks):
            raise ValueError(f"raddle: split_group: a rank stands twice in {split_ranks}")
        seen.update(ranks)


def _split(parent: ProcessGroupRaddle, split_ranks: Any, timeout: timedelta | None,
           group_desc: str | None) -> ProcessGroupRaddle | None:
    _check_split(split_ranks)
    ranks = next((sorted(ranks) for ranks in split_ranks if parent.rank() in ranks), None)
    if ranks is None:
        return None
    name = c10d._process_group_name([parent._ranks[rank] for rank in ranks],
                                    use_hashed_name=True)
    group = parent.split_group(ranks, timeout, None, name, group_desc)
    backend, _ = c10d._world.pg_map[parent]
    c10d._register_pg_in_world(
        group, backend_name=backend, store=group.get_group_store(), group_name=name,
        backend_config=c10d._world.pg_backend_config[parent],
        rank_mapping={rank: index for index, rank in enumerate(group._ranks)})
    return group


def _split_group(original: Callable) -> Callable:
    @functools.wraps(original)
    def split_group(parent_pg: Any = None, split_ranks: Any = None,
                    timeout: timedelta | None = None, pg_options: Any = None,
                    group_desc: str | None = None, **others: Any) -> Any:
        ours = _ours(parent_pg)
        if ours is None:
            return original(parent_pg, split_ranks, timeout, pg_options, group_desc, **others)
        return _split(ours, split_ranks, timeout, group_desc)

    return split_group


def install() -> None:
    for name, wrap in (("monitored_barrier", _monitored_barrier), ("split_group", _split_group)):
        if not hasattr(c10d, name):
            continue
        wrapped = wrap(getattr(c10d, name))
        setattr(c10d, name, wrapped)
        setattr(dist, name, wrapped)
