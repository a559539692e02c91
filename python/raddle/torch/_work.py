# SPDX-License-Identifier: BSD-3-Clause
"""Works: calls that go on beside the program, as torch.distributed.Work shows them.

A Pending holds all that a call needs until it is done: its buffers, and what is to happen
to them then. The world keeps it until somebody has learned the result, so that a program
may drop the Work; memory stays.
"""

from __future__ import annotations

import threading
import time
from ctypes import byref, c_bool
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Callable

import torch
from torch.distributed import Work

from raddle import _library as rdl
from raddle.torch import _errors
from raddle.torch._sites import here

if TYPE_CHECKING:
    from raddle.torch._world import World

_NO_TIMEOUT = timedelta(0)


def milliseconds(timeout: timedelta) -> int:
    """At least 1: 0 means the default to the library."""
    return max(1, round(timeout.total_seconds() * 1000))


class Pending:
    """One call that goes on; of any thread."""

    __slots__ = ("world", "handle", "keep", "finish", "result", "source", "done", "failure",
                 "future", "ended", "lock")

    def __init__(self, world: World, handle: rdl.Work, keep: Any,
                 finish: Callable[[], None] | None, result: list[torch.Tensor]):
        self.world = world
        self.handle = handle
        self.keep = keep        # buffers that the call uses
        self.finish = finish    # copies what came to where the program wants it
        self.result = result
        self.source = -1
        self.done = False
        self.failure: Exception | None = None
        self.future: torch.futures.Future | None = None
        self.ended: threading.Event | None = None
        self.lock = threading.Lock()

    def end(self, status: int) -> None:
        """The library has given the result; called once for each handle."""
        failure = None
        if status:
            failure = _errors.last(status)
        elif self.finish is not None:
            try:
                self.finish()
            except Exception as error:  # shown to whoever asks for the result
                failure = error
        self.settle(failure)

    def settle(self, failure: Exception | None) -> None:
        self.world.forget(self)
        self.keep = self.finish = None
        with self.lock:
            self.failure = failure
            self.done = True
            future, ended = self.future, self.ended
        if ended is not None:
            ended.set()
        if future is not None:
            fulfil(future, self)

    def wait(self, timeout_ms: int) -> None:
        """Until it is done. Raises its failure, or that of the timeout."""
        if not self.done:
            status = self.world.lib.rdl_work_wait_at(
                self.world.pointer, self.handle, timeout_ms, here())
            self._learn(status, timeout_ms)
        if self.failure is not None:
            raise self.failure

    def _learn(self, status: int, timeout_ms: int) -> None:
        if status == rdl.TIMEOUT and timeout_ms and not self._is_over():
            raise _errors.last(status)
        if status == rdl.INVALID and self._other_learns():
            return
        if not self.done:
            self.end(status)

    def _is_over(self) -> bool:
        """After a timeout: whether it was the call's own, which has ended the handle."""
        return self.done

    def _other_learns(self) -> bool:
        """The handle has ended: another thread has the result, or is about to note it."""
        deadline = time.monotonic() + 1
        while not self.done and time.monotonic() < deadline:
            time.sleep(0)
        return self.done

    def test(self) -> bool:
        """Whether it is done; helps it on."""
        if not self.done:
            done = c_bool()
            status = self.world.lib.rdl_work_test(self.world.pointer, self.handle, byref(done))
            if done.value or status:
                self._learn(status, 0)
        return self.done


def fulfil(future: torch.futures.Future, pending: Pending) -> None:
    if pending.failure is not None:
        future.set_exception(pending.failure)
    else:
        future.set_result(pending.result)


class RaddleWork(Work):
    """What an asynchronous call returns."""

    def __init__(self, pending: Pending):
        super().__init__()
        self._pending = pending

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        self._pending.wait(milliseconds(timeout) if timeout > _NO_TIMEOUT else 0)
        return True

    def synchronize(self) -> None:
        self._pending.wait(0)

    def is_completed(self) -> bool:
        return self._pending.test()

    def is_success(self) -> bool:
        return self._pending.test() and self._pending.failure is None

    def exception(self) -> Exception | None:
        self._pending.test()
        return self._pending.failure

    def result(self) -> list[torch.Tensor]:
        return self._pending.result

    def source_rank(self) -> int:
        return self._pending.source

    def _source_rank(self) -> int:
        return self._pending.source

    def get_future(self) -> torch.futures.Future:
        return self._pending.world.futures.of(self._pending)


class DoneWork(Work):
    """What a blocking call returns: there is nothing left to wait for."""

    def __init__(self, result: list[torch.Tensor] | None = None):
        super().__init__()
        self._result = [] if result is None else result

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        return True

    def synchronize(self) -> None:
        return None

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True

    def exception(self) -> None:
        return None

    def result(self) -> list[torch.Tensor]:
        return self._result

    def get_future(self) -> torch.futures.Future:
        future: torch.futures.Future = torch.futures.Future()
        future.set_result(self._result)
        return future


class Futures:
    """Completes the futures of a world's calls, on a thread that the first one starts."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._waiting: list[Pending] = []
        self._thread: threading.Thread | None = None
        self._closed = False

    def of(self, pending: Pending) -> torch.futures.Future:
        """The pending's future, the same each time."""
        with pending.lock:
            if pending.future is None:
                pending.future = torch.futures.Future()
                fresh, done = True, pending.done
            else:
                fresh, done = False, True
        if fresh and done:
            fulfil(pending.future, pending)
        elif fresh:
            self._add(pending)
        return pending.future

    def _add(self, pending: Pending) -> None:
        with self._lock:
            self._waiting.append(pending)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="raddle futures",
                                                daemon=True)
                self._thread.start()
            self._lock.notify()

    def _serve(self) -> None:
        while True:
            with self._lock:
                while not self._waiting and not self._closed:
                    self._lock.wait()
                if self._closed and not self._waiting:
                    return
                waiting = list(self._waiting)
            for pending in waiting:
                self._push(pending)
            with self._lock:
                self._waiting = [p for p in self._waiting if not p.done]

    @staticmethod
    def _push(pending: Pending) -> None:
        try:
            pending.wait(2)
        except Exception:  # its own failure is in the future; a timeout means later
            pass

    def close(self) -> None:
        """Ends the thread, when all calls have been waited for."""
        with self._lock:
            self._closed = True
            self._lock.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
