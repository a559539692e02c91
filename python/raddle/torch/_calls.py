# SPDX-License-Identifier: BSD-3-Clause
"""Making the library's calls: blocking, beside the program, or in a batch.

A call is prepared first, which checks and copies, and then made; so that of several that
belong together either all are made or none.
"""

from __future__ import annotations

import threading
from ctypes import addressof, byref, c_int, c_void_p
from datetime import timedelta
from typing import Any, NamedTuple, Sequence

import torch
from torch import Tensor
from torch.distributed import Work

from raddle import _library as rdl
from raddle.torch import _errors, _ranges
from raddle.torch._buffers import Finish, after
from raddle.torch._sites import here
from raddle.torch._work import DoneWork, Pending, RaddleWork, milliseconds
from raddle.torch._world import World

_UNSET = timedelta(milliseconds=-1)


class Prepared(NamedTuple):
    """A call that can be made: all but who makes it, and how."""

    name: str               # "all_reduce"
    arguments: tuple        # between the group and rdl_call
    keep: Any               # what its buffers lie in
    result: list[Tensor]    # the program's tensors that it writes
    finish: Finish = None   # what is to be done to them at the end
    factor: float = 0.0     # of PREMUL_SUM


class _Batch:
    """Calls that one thread makes together."""

    def __init__(self, world: World):
        self.thread = threading.get_ident()
        self.calls: list[Prepared] = []
        pointer = c_void_p()
        _errors.check(world.lib.rdl_batch_begin(world.pointer, byref(pointer)))
        self.pointer = pointer


class Calls:
    """The part of a process group that knows its lane and makes calls on it."""

    def __init__(self, world: World, ranks: Sequence[int], name: str, timeout_ms: int,
                 is_default: bool):
        self.raddle_world = world
        self._lib = world.lib
        self._ranks = list(ranks)
        self._size = len(self._ranks)
        self._name = name
        self._functions = world.functions
        # The default group is the world itself, which is always open.
        self._handle = rdl.Group() if is_default else self._open(name)
        self._batch: _Batch | None = None
        self._done = DoneWork()
        self._set_limit(timeout_ms)

    def _set_limit(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        # Of all blocking calls without a wish of their own; nobody writes it.
        self._plain = rdl.Call(timeout_ms=timeout_ms)
        self._plain_at = addressof(self._plain)

    def _open(self, name: str) -> rdl.Group:
        handle = rdl.Group()
        ranks = (c_int * self._size)(*self._ranks)
        _errors.check(self._lib.rdl_group_open(
            self.raddle_world.pointer, ranks, self._size, lane_name(name), byref(handle)))
        return handle

    def _limit(self, opts: Any) -> int:
        timeout = opts.timeout
        return self._timeout_ms if timeout == _UNSET else milliseconds(timeout)

    # --- one call -------------------------------------------------------------

    def _make(self, call: Prepared, opts: Any) -> Work:
        """Makes the call as opts and a batch that is open want it."""
        if _ranges.wanted():
            with _ranges.of(call.name, [call.keep]):
                return self._make_now(call, opts)
        return self._make_now(call, opts)

    def _make_now(self, call: Prepared, opts: Any) -> Work:
        batch = self._batch
        timeout = opts.timeout
        limit = self._timeout_ms if timeout == _UNSET else milliseconds(timeout)
        if batch is not None and batch.thread == threading.get_ident():
            self._add(call, batch, limit)
            return self._done
        if opts.asyncOp:
            return self._issue(call, self._handle, limit)
        self._run(call, limit)
        return self._done

    def _run(self, call: Prepared, limit: int) -> None:
        if limit == self._timeout_ms and call.factor == 0:
            at = self._plain_at
        else:
            own = rdl.Call(timeout_ms=limit, factor=call.factor)
            at = addressof(own)
        status = self._functions[call.name](self.raddle_world.pointer, self._handle,
                                            *call.arguments, at, here())
        if status:
            raise _errors.last(status)
        if call.finish is not None:
            call.finish()
        if self.raddle_world.dropped:
            self.raddle_world.sweep()

    def _start(self, call: Prepared, group: rdl.Group, limit: int) -> rdl.Work:
        handle = rdl.Work()
        how = rdl.Call(timeout_ms=limit, work=addressof(handle), factor=call.factor)
        status = self._functions[call.name](self.raddle_world.pointer, group, *call.arguments,
                                            addressof(how), here())
        if status:
            raise _errors.last(status)
        return handle

    def _issue(self, call: Prepared, group: rdl.Group, limit: int) -> RaddleWork:
        handle = self._start(call, group, limit)
        return RaddleWork(Pending(self.raddle_world, handle, call.keep, call.finish, call.result))

    # --- several --------------------------------------------------------------

    def _add(self, call: Prepared, batch: _Batch, limit: int,
             group: rdl.Group | None = None) -> None:
        how = rdl.Call(timeout_ms=limit, batch=batch.pointer.value, factor=call.factor)
        status = self._functions[call.name](self.raddle_world.pointer, group or self._handle,
                                            *call.arguments, addressof(how), here())
        if status:
            raise _errors.last(status)
        batch.calls.append(call)

    def _together(self, calls: list[Prepared], opts: Any) -> Work:
        """Makes all of them, which start together."""
        if calls and _ranges.wanted():
            with _ranges.of(calls[0].name, [call.keep for call in calls]):
                return self._together_now(calls, opts)
        return self._together_now(calls, opts)

    def _together_now(self, calls: list[Prepared], opts: Any) -> Work:
        limit = self._limit(opts)
        if self._batch is not None and self._batch.thread == threading.get_ident():
            for call in calls:
                self._add(call, self._batch, limit)
            return self._done
        batch = _Batch(self.raddle_world)
        try:
            for call in calls:
                self._add(call, batch, limit)
        except Exception:
            self._end(batch, False)
            raise
        return self._end(batch, opts.asyncOp)

    def _end(self, batch: _Batch, beside: bool) -> Work:
        finish = after([call.finish for call in batch.calls])
        result = [tensor for call in batch.calls for tensor in call.result]
        if not batch.calls:
            beside = False
        handle = rdl.Work()
        how = rdl.Call(work=addressof(handle) if beside else None)
        status = self._lib.rdl_batch_end(batch.pointer, byref(how))
        if status:
            raise _errors.last(status)
        if beside:
            return RaddleWork(Pending(self.raddle_world, handle, batch.calls, finish, result))
        if finish is not None:
            finish()
        return self._done

    def _start_coalescing(self, device: torch.device | None = None) -> None:
        if self._batch is not None:
            raise RuntimeError("raddle: a batch of this group's calls is open already")
        self._batch = _Batch(self.raddle_world)

    def _end_coalescing(self, device: torch.device | None = None) -> Work:
        batch, self._batch = self._batch, None
        if batch is None:
            raise RuntimeError("raddle: there is no batch of this group's calls to end")
        return self._end(batch, True)


def lane_name(name: str) -> bytes:
    """The name of a lane: at most 63 bytes, and another one for each name."""
    text = name.encode()
    if len(text) <= 63:
        return text
    import hashlib

    return text[:30] + b"~" + hashlib.sha1(text).hexdigest()[:32].encode()
