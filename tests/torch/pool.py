# SPDX-License-Identifier: BSD-3-Clause
"""Ranks for tests: processes which are started once and run many bodies.

A body is a function of a test file. Every rank of a pool runs it with the same
arguments, on a default process group of the pool's backend, and sends back what
it returns. Ranks are forked from the process of the tests, which has imported
PyTorch and computes on one thread, so that a pool is there in tenths of a second.

When a body fails on a rank, or is not done in time, its pool ends and the next
body gets a new one: nothing that a test left can disturb another.
"""

import faulthandler
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
import torch.distributed as dist

import raddle.torch  # noqa: F401  (forked ranks need not load it)

_FORK = multiprocessing.get_context("fork")

_READY = "ready"


class Failed(AssertionError):
    """A body failed on some rank; the text says on which, and how."""


class Pool:
    """Ranks of one backend. One thread uses it; close() ends the ranks."""

    def __init__(self, size: int, backend: str = "raddle", limit: float = 60):
        self.size = size
        self.backend = backend
        self._limit = limit
        self._folder = tempfile.TemporaryDirectory()
        self._pipes: list[Connection] = []
        self._processes: list[multiprocessing.Process] = []
        for rank in range(size):
            self._start(rank)
        self._gather(30)

    def run(self, body: Callable, *args: Any, seconds: float = 60) -> list[Any]:
        """What body(*args) returns on each rank. Failed, if it fails on one."""
        for pipe in self._pipes:
            _send(pipe, (body, args, seconds))
        return self._gather(seconds)

    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    @property
    def usable(self) -> bool:
        return bool(self._processes)

    def close(self) -> None:
        """Lets ranks leave, and kills those which do not in 10 seconds."""
        for pipe in self._pipes:
            try:
                _send(pipe, None)
            except OSError:
                pass
        self._end(10)

    def _start(self, rank: int) -> None:
        ours, theirs = _FORK.Pipe()
        arguments = (rank, self.size, self.backend, self._limit, self._folder.name, theirs)
        process = _FORK.Process(target=_rank, args=(*arguments, [ours, *self._pipes]))
        process.start()
        theirs.close()
        self._pipes.append(ours)
        self._processes.append(process)

    def _gather(self, seconds: float) -> list[Any]:
        """One answer of each rank; a failed or a late one ends the pool."""
        deadline = time.monotonic() + seconds
        answers: dict[int, Any] = {}
        failures: dict[int, str] = {}
        while len(answers) + len(failures) < self.size:
            left = [p for r, p in enumerate(self._pipes) if r not in answers | failures]
            ready = wait(left, max(0.0, deadline - time.monotonic()))
            for pipe in ready:
                _take(pipe, self._pipes.index(pipe), answers, failures)  # type: ignore
            if failures:
                # The others fail too, soon; their sentences belong to the report.
                deadline = min(deadline, time.monotonic() + 5)
            if not ready:
                break
        if len(answers) < self.size:
            self._fail(answers, failures, seconds)
        return [answers[rank] for rank in range(self.size)]

    def _fail(self, answers: dict, failures: dict, seconds: float) -> None:
        silent = [r for r in range(self.size) if r not in answers and r not in failures]
        self._end(0)
        text = "".join(f"\n--- rank {rank} ---\n{failures[rank]}" for rank in sorted(failures))
        for rank in silent:
            text += f"\n--- rank {rank} was not done in {seconds} s ---\n{self._log(rank)}"
        raise Failed(f"of {self.size} ranks on {self.backend}:{text}")

    def _log(self, rank: int) -> str:
        with open(f"{self._folder.name}/{rank}", errors="replace") as file:
            return file.read()[-6000:]

    def _end(self, patience: float) -> None:
        deadline = time.monotonic() + patience
        for process in self._processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
        for pipe in self._pipes:
            pipe.close()
        self._processes, self._pipes = [], []
        self._folder.cleanup()


def _take(pipe: Connection, rank: int, answers: dict, failures: dict) -> None:
    try:
        good, value = pickle.loads(pipe.recv_bytes())
    except EOFError:
        good, value = False, "its process has ended"
    (answers if good else failures)[rank] = value


def _send(pipe: Connection, what: Any) -> None:
    """As bytes: PyTorch would send tensors through files in /dev/shm."""
    pipe.send_bytes(pickle.dumps(what))


def _rank(
    rank: int, size: int, backend: str, limit: float, folder: str, pipe: Connection,
    inherited: list[Connection],
) -> None:
    """The life of a rank: it joins, and runs what it is sent until it is sent None."""
    for other in inherited:
        other.close()
    log = open(f"{folder}/{rank}", "w")
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    sys.stdout = sys.stderr = log
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        join(backend, rank, size, f"{folder}/store", limit)
        _send(pipe, (True, _READY))
        while (sent := pickle.loads(pipe.recv_bytes())) is not None:
            _send(pipe, _answer(rank, *sent))
        if dist.is_initialized():
            dist.destroy_process_group()
    except EOFError:
        pass
    except BaseException:
        _send(pipe, (False, traceback.format_exc()))
    log.flush()
    os._exit(0)


def join(backend: str, rank: int, size: int, path: str, limit: float = 60) -> None:
    """init_process_group, over a file."""
    torch.set_num_threads(1)
    dist.init_process_group(
        backend, init_method=f"file://{path}", rank=rank, world_size=size,
        timeout=timedelta(seconds=limit),
    )


def _answer(rank: int, body: Callable, args: tuple, seconds: float) -> tuple[bool, Any]:
    # A rank which is late says where it is, before it is killed.
    faulthandler.dump_traceback_later(max(0.5, seconds - 2), file=sys.stderr)
    torch.manual_seed(1000 + rank)
    try:
        return True, body(*args)
    except BaseException:
        return False, traceback.format_exc()
    finally:
        faulthandler.cancel_dump_traceback_later()
        gc.collect()


class Pools:
    """Pools by size and backend, each started when it is first wanted."""

    def __init__(self) -> None:
        self._pools: dict[tuple, Pool] = {}

    def get(self, size: int, backend: str = "raddle") -> Pool:
        pool = self._pools.get((size, backend))
        if pool is None or not pool.usable:
            pool = self._pools[size, backend] = Pool(size, backend)
        return pool

    def run(self, size: int, body: Callable, *args: Any, seconds: float = 60) -> list[Any]:
        """On raddle."""
        return self.get(size).run(body, *args, seconds=seconds)

    def both(self, size: int, body: Callable, *args: Any, seconds: float = 60) -> tuple:
        """On raddle, and on gloo."""
        return (
            self.get(size).run(body, *args, seconds=seconds),
            self.get(size, "gloo").run(body, *args, seconds=seconds),
        )

    def fresh(self, size: int, body: Callable, *args: Any, limit: float = 60) -> list[Any]:
        """On ranks of its own, which end with it; limit: that of their calls."""
        pool = Pool(size, limit=limit)
        try:
            return pool.run(body, *args)
        finally:
            pool.close()

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()
