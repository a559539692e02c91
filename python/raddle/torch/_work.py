# SPDX-License-Identifier: BSD-3-Clause
"""Works: calls that go on beside the program, as torch.distributed.Work shows them.

A Pending holds all that a call needs until it is done: its buffers, and what is to happen
to them then. The world keeps it until its result is known, so that a program may drop the
Work: the memory stays, and the library keeps the result until it is asked for.
"""

from __future__ import annotations

import threading
import time
from ctypes import byref, c_bool
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
from torch.distributed import Work

from raddle import _library as rdl
from raddle.torch import _errors
from raddle.torch._buffers import Finish
from raddle.torch._sites import here

if TYPE_CHECKING:
    from raddle.torch._world import World

_SMALL = 4096
_NO_TIMEOUT = timedelta(0)


def milliseconds(timeout: timedelta) -> int:
    """At least 1: 0 means the default to the library."""
    return max(1, round(timeout.total_seconds() * 1000))


class Outcome:
    """What a call comes to. Threads: any; it is settled once."""

    __slots__ = ("result", "source", "done", "failure", "trigger", "future", "lock")

    def __init__(self, result: list[torch.Tensor]):
        self.result = result
        self.source = -1
        self.done = False
        self.failure: Exception | None = None
        self.trigger: torch.futures.Future | None = None
        self.future: torch.futures.Future | None = None
        self.lock = threading.Lock()

    def settle(self, failure: Exception | None) -> None:
        with self.lock:
            if self.done:
                return
            self.failure = failure
            self.done = True
            trigger = self.trigger
        if trigger is not None:
            trigger.set_result(None)

    def test(self) -> bool:
        """Whether it is done; helps it on."""
        return self.done

    def wait(self, timeout_ms: int) -> None:
        """Until it is done. Raises its failure, or that timeout_ms (0: none) has passed."""
        raise NotImplementedError

    def make_future(self) -> torch.futures.Future:
        """Its future, the same each time. Somebody must see to it that it is settled.

        It is what follows from another one, as only a callback that raises makes a future
        that native code, such as DDP's, finds failed: set_exception makes one whose value
        is the exception, which DDP takes for a list of tensors. So its error is a
        RuntimeError, with our sentence in it."""
        with self.lock:
            done = self.done
            if self.future is None:
                trigger: torch.futures.Future = torch.futures.Future()
                self.future = trigger.then(self._deliver)
                if done:
                    trigger.set_result(None)
                else:
                    self.trigger = trigger
        return self.future

    def _deliver(self, _: torch.futures.Future) -> list[torch.Tensor]:
        if self.failure is not None:
            raise self.failure
        return self.result


class Pending(Outcome):
    """A call of the library that goes on, by its rdl_work."""

    __slots__ = ("world", "handle", "keep", "finish", "told")

    def __init__(self, world: World, handle: rdl.Work | None, keep: Any, finish: Finish,
                 result: list[torch.Tensor]):
        super().__init__(result)
        self.world = world
        self.handle = handle
        self.keep = keep
        self.finish = finish
        self.told = False  # the world's thread is told when it is done
        world.remember(self)

    def end(self, status: int) -> None:
        """The library has given the result, to this thread alone."""
        failure: Exception | None = None
        if status:
            failure = _errors.last(status)
        elif self.finish is not None:
            try:
                self.finish()
            except Exception as error:  # for whoever asks for the result
                failure = error
        self.settle(failure)

    def settle(self, failure: Exception | None) -> None:
        self.keep = self.finish = None
        super().settle(failure)
        self.world.forget(self)

    def wait(self, timeout_ms: int) -> None:
        if not self.done:
            status = self.world.lib.rdl_work_wait_at(
                self.world.pointer, self.handle, timeout_ms, here())
            if status == rdl.TIMEOUT and timeout_ms:
                self._time_out()
            else:
                self._learn(status)
        if self.failure is not None:
            raise self.failure

    def finish_here(self) -> None:
        """Until it is done, whatever comes of it: whoever asks for the result learns it."""
        try:
            self.wait(0)
        except Exception:
            if not self.done:
                raise

    def give_up(self) -> None:
        """Its group ends: a receive does not wait for a send that may never come."""
        if not self.done and self.source >= 0:
            self.world.lib.rdl_work_revoke_at(self.world.pointer, self.handle, here())

    def _time_out(self) -> None:
        """The wait's own limit has passed, or the call's, which is its result."""
        late = _errors.last(rdl.TIMEOUT)
        done = c_bool()
        status = self.world.lib.rdl_work_test(self.world.pointer, self.handle, byref(done))
        if done.value:
            self.end(status)
        elif status == rdl.OK:
            raise late
        else:
            self.settle(late)

    def _learn(self, status: int) -> None:
        if status == rdl.INVALID:
            # The handle has ended: another thread has the result, and is noting it.
            deadline = time.monotonic() + 60
            while not self.done and time.monotonic() < deadline:
                time.sleep(0)
        if not self.done:
            self.end(status)

    def test(self) -> bool:
        if not self.done:
            done = c_bool()
            status = self.world.lib.rdl_work_test(self.world.pointer, self.handle, byref(done))
            if done.value or status:
                self._learn(status)
        return self.done


class RaddleWork(Work):
    """What an asynchronous call returns."""

    def __init__(self, outcome: Outcome):
        super().__init__()
        self._outcome = outcome
        self._waited = False

    def __del__(self) -> None:
        outcome = self._outcome
        if not isinstance(outcome, Pending):
            return
        if not outcome.done and not outcome.told:
            outcome.world.dropped.append(outcome)
        if not self._waited:
            # PyTorch's C++ may have it still, wait for it once, and ask for its future:
            # DDP's join does. What is left of a work without its Python part would wait
            # for ever. Tensors are kept only while they are as small as join's.
            if sum(tensor.nbytes for tensor in outcome.result) > _SMALL:
                outcome.result = []
            outcome.world.unwaited.append(self)

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        self._waited = True
        self._outcome.wait(milliseconds(timeout) if timeout > _NO_TIMEOUT else 0)
        return True

    def synchronize(self) -> None:
        self._outcome.wait(0)

    def is_completed(self) -> bool:
        return self._outcome.test()

    def is_success(self) -> bool:
        return self._outcome.test() and self._outcome.failure is None

    def exception(self) -> Exception | None:
        self._outcome.test()
        return self._outcome.failure

    def result(self) -> list[torch.Tensor]:
        return self._outcome.result

    def source_rank(self) -> int:
        return self._outcome.source

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future:
        future = self._outcome.make_future()
        if isinstance(self._outcome, Pending):
            self._waited = True
            self._outcome.world.watcher.watch(self._outcome)
        return future


class DoneWork(Work):
    """What a blocking call returns: there is nothing left to wait for."""

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        return True

    def synchronize(self) -> None:
        return None

    def is_completed(self) -> bool:
        return True

    is_success = is_completed

    def exception(self) -> None:
        return None

    def result(self) -> list[torch.Tensor]:
        return []

    def get_future(self) -> torch.futures.Future:
        future: torch.futures.Future = torch.futures.Future()
        future.set_result([])
        return future
