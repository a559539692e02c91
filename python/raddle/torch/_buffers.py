# SPDX-License-Identifier: BSD-3-Clause
"""Tensors as the library's buffers: contiguous memory to read from or to write into.

What lies otherwise is copied before a call, or after it by the function that comes with
the buffer. Buffers must be kept until the call is done; pointers do not do that.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import torch
from torch import Tensor

from raddle.torch import _types

Finish = Callable[[], None] | None


def one(tensors: Any, what: str) -> Tensor:
    """The only tensor of a list of one, as all calls but those of lists have it."""
    if isinstance(tensors, Tensor):
        return tensors
    if len(tensors) != 1:
        raise RuntimeError(f"raddle: {what}: one tensor is wanted, and the list has "
                           f"{len(tensors)}")
    return tensors[0]


def inner(lists: Any, what: str) -> list[Tensor]:
    """The only list of a list of one, or a list of tensors itself."""
    if len(lists) > 0 and isinstance(lists[0], Tensor):
        return lists
    if len(lists) != 1:
        raise RuntimeError(f"raddle: {what}: one list of tensors is wanted, and there are "
                           f"{len(lists)}")
    return lists[0]


def after(steps: list[Finish]) -> Finish:
    """One that does all of them."""
    given = [step for step in steps if step is not None]
    if len(given) < 2:
        return given[0] if given else None

    def finish() -> None:
        for step in given:
            step()

    return finish


def assign(target: Tensor, source: Tensor) -> None:
    with torch.no_grad():
        target.copy_(source)


def to_read(tensor: Tensor) -> Tensor:
    return tensor if tensor.is_contiguous() else tensor.detach().contiguous()


def to_write(tensor: Tensor) -> tuple[Tensor, Finish]:
    if tensor.is_contiguous():
        return tensor, None
    target = tensor.detach()
    copy = torch.empty(target.shape, dtype=target.dtype)
    return copy, lambda: assign(target, copy)


def to_change(tensor: Tensor) -> tuple[Tensor, Finish]:
    """To be read and then written."""
    if tensor.is_contiguous():
        return tensor, None
    target = tensor.detach()
    copy = target.contiguous()
    return copy, lambda: assign(target, copy)


def adjacent(tensors: Sequence[Tensor]) -> bool:
    """Whether they are contiguous, and follow each other in memory without gaps."""
    end = None
    for tensor in tensors:
        if not tensor.is_contiguous():
            return False
        if tensor.numel() == 0:
            continue
        start = tensor.data_ptr()
        if end is not None and start != end:
            return False
        end = start + tensor.numel() * tensor.element_size()
    return True


def _first(tensors: Sequence[Tensor]) -> Tensor:
    """The one at which adjacent ones begin."""
    return next((tensor for tensor in tensors if tensor.numel() > 0), tensors[0])


def all_to_read(tensors: Sequence[Tensor]) -> Tensor:
    """All of them, one behind another."""
    if adjacent(tensors):
        return _first(tensors)
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def all_to_write(tensors: Sequence[Tensor]) -> tuple[Tensor, Finish]:
    """Room for all of them, one behind another."""
    if adjacent(tensors):
        return _first(tensors), None
    targets = [tensor.detach() for tensor in tensors]
    counts = [target.numel() for target in targets]
    whole = torch.empty(sum(counts), dtype=targets[0].dtype)

    def finish() -> None:
        for target, part in zip(targets, whole.split(counts)):
            assign(target, part.view(target.shape))

    return whole, finish


def check_alike(tensors: Sequence[Tensor], dtype: torch.dtype, what: str) -> None:
    """All of one dtype, and such that can be sent."""
    for tensor in tensors:
        _types.element(tensor)
        if tensor.dtype != dtype:
            raise RuntimeError(f"raddle: {what}: tensors of {dtype} and {tensor.dtype} in one call")


def check_list(tensors: Sequence[Tensor], size: int, dtype: torch.dtype, what: str) -> None:
    """One for each member of the group."""
    if len(tensors) != size:
        raise RuntimeError(f"raddle: {what}: the list has {len(tensors)} tensors, and the group "
                           f"{size} ranks")
    check_alike(tensors, dtype, what)


def check_sizes(tensors: Sequence[Tensor], like: Tensor, what: str) -> None:
    """All as large as this one."""
    for index, tensor in enumerate(tensors):
        if tensor.numel() != like.numel():
            raise RuntimeError(f"raddle: {what}: tensor {index} has {tensor.numel()} elements, and "
                               f"this rank's {like.numel()}; all must be equal")
