# SPDX-License-Identifier: BSD-3-Clause
"""Worlds: this rank's place in a job, opened with the default process group.

Ranks that `raddle run` started meet as it says. All others meet under a name that rank 0
makes and puts into the group's store: whoever shares the store is in the job, and no two
jobs, nor two lives of one, can be confused.
"""

from __future__ import annotations

import os
import secrets
from ctypes import byref, c_void_p
from typing import Any

from raddle import _library as rdl
from raddle.torch import _errors
from raddle.torch._work import Futures, Pending

_BOOT = "/proc/sys/kernel/random/boot_id"


def _machine() -> str:
    try:
        with open(_BOOT, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return "unknown"


def _started_by_raddle(rank: int, size: int) -> bool:
    """Whether `raddle run` has given this process that very place."""
    env = os.environ
    return ("RADDLE_FD" in env and env.get("RADDLE_RANK") == str(rank)
            and env.get("RADDLE_WORLD_SIZE") == str(size))


def _meeting_name(store: Any, rank: int) -> bytes:
    """The job's name, out of the store. Each rank counts its lives there, so that those
    of one life meet."""
    life = store.add(f"raddle/lives/{rank}", 1)
    key = f"raddle/job/{life}"
    if rank == 0:
        store.set(key, f"torch-{secrets.token_hex(8)} {_machine()}")
    name, machine = store.get(key).decode().split(" ")
    if machine != _machine():
        raise RuntimeError("raddle: ranks are on more than one host, which this version of raddle "
                           f"cannot do: rank 0's was booted as {machine}, rank {rank}'s as "
                           f"{_machine()}")
    return name.encode()


class World:
    """An open rdl_world, and the calls on it that nobody has waited for."""

    def __init__(self, store: Any, rank: int, size: int, timeout_ms: int):
        self.lib = rdl.library()
        self.rank = rank
        self.size = size
        self.futures = Futures()
        self.peak_dev_shm = 0
        self.users = 0
        self._pending: dict[int, Pending] = {}
        self._issued = 0
        options = rdl.WorldOptions(timeout_ms=timeout_ms)
        if "RADDLE_START_TIMEOUT" not in os.environ:
            options.start_timeout_ms = timeout_ms
        if size > 1 and not _started_by_raddle(rank, size):
            options.rank = rank
            options.size = size
            options.job = _meeting_name(store, rank)
        elif size == 1:
            options.size = 1
        pointer = c_void_p()
        _errors.check(self.lib.rdl_world_open(byref(options), byref(pointer)))
        self.pointer: int = pointer.value  # type: ignore[assignment]

    def remember(self, pending: Pending) -> None:
        self._pending[id(pending)] = pending
        self._issued += 1
        # The library keeps the results of 1,024 works that nobody has asked for.
        if self._issued % 256 == 0:
            self.sweep()

    def forget(self, pending: Pending) -> None:
        self._pending.pop(id(pending), None)

    def sweep(self) -> None:
        """Learns the results of all that is done."""
        for pending in list(self._pending.values()):
            pending.test()

    def account(self) -> rdl.Account:
        account = rdl.Account()
        _errors.check(self.lib.rdl_account_read(self.pointer, byref(account)))
        return account

    def close(self) -> None:
        """Waits for what is pending, as rdl_world_close does, and leaves the job."""
        if self.pointer is None:
            return
        for pending in list(self._pending.values()):
            try:
                pending.wait(0)
            except Exception:  # whoever asks for that call's result gets it
                pass
        self.futures.close()
        pointer, self.pointer = self.pointer, None  # type: ignore[assignment]
        _errors.check(self.lib.rdl_world_close(pointer))
