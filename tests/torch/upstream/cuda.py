# SPDX-License-Identifier: BSD-3-Clause
"""Processors in the place of GPUs, for tests which are written for GPUs only.

Much of what PyTorch's suite asks of a backend it asks on GPUs alone. After
pretend() a process is told that it has GPUs, and what it puts there stays in
the host's memory; so the backend is asked for the same calls with the same
values. Streams are empty: all runs in the caller's order.
"""

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


def pretend(gpus: int) -> None:
    """Lets this process and those forked from it take the host for gpus GPUs."""
    from torch.testing._internal import common_distributed as common

    common.TEST_CUDA = True
    answers = {
        "is_available": True,
        "device_count": gpus,
        "current_device": 0,
        "set_device": None,
        "synchronize": None,
        "manual_seed": None,
        "manual_seed_all": None,
        "empty_cache": None,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *_, _answer=answer, **__: _answer)
    for name in ("Stream", "Event", "current_stream", "stream", "device"):
        setattr(torch.cuda, name, Nothing)
    torch.nn.Module.cuda = lambda self, device=None: self
    _let_modules_go_to_a_number()
    _let_ddp_take_device_ids()
    OnTheHost().__enter__()


class Nothing:
    """A stream, an event, or a scope of one: every call does nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None

    def __enter__(self) -> "Nothing":
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class OnTheHost(TorchFunctionMode):
    """Makes tensors in the host's memory, whichever GPU is asked for."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.cuda:
            return args[0].clone()
        if "device" in kwargs:
            kwargs["device"] = _host(kwargs["device"])
        if func is torch.Tensor.to:
            args = tuple(_host(arg) for arg in args)
        return func(*args, **kwargs)


def _host(device: Any) -> Any:
    """The host for what names a GPU; all else as it is."""
    if isinstance(device, int) and not isinstance(device, bool):
        return torch.device("cpu")
    if isinstance(device, str) and device.startswith("cuda"):
        return torch.device("cpu")
    if isinstance(device, torch.device) and device.type == "cuda":
        return torch.device("cpu")
    return device


def _let_modules_go_to_a_number() -> None:
    """Module.to reads its arguments where no mode sees them."""
    original = torch.nn.Module.to

    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs = {name: _host(value) for name, value in kwargs.items()}
        return original(self, *(_host(arg) for arg in args), **kwargs)

    torch.nn.Module.to = to


def _let_ddp_take_device_ids() -> None:
    """DDP refuses device_ids for a module in the host's memory."""
    ddp = torch.nn.parallel.DistributedDataParallel
    original = ddp.__init__

    def without(self: Any, module: Any, *ids: Any, **rest: Any) -> None:
        rest.pop("device_ids", None)
        rest.pop("output_device", None)
        original(self, module, *ids[2:], **rest)

    ddp.__init__ = without
