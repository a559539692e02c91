# SPDX-License-Identifier: BSD-3-Clause
"""Worlds: this rank's place in a job, opened with the default process group.

Ranks that `raddle run` started meet as it says. All others meet under a name that rank 0
makes and puts into the group's store: whoever shares the store is in the job, and no two
jobs, nor two lives of one, can be confused.
"""

from __future__ import annotations

import atexit
import os
import secrets
import sys
from collections import deque
from ctypes import byref, c_void_p
from typing import TYPE_CHECKING, Any

from torch.distributed import DistBackendError

from raddle import _library as rdl
from raddle.torch import _errors
from raddle.torch._watcher import Watcher

if TYPE_CHECKING:
    from raddle.torch._work import Pending, RaddleWork

_BOOT = "/proc/sys/kernel/random/boot_id"
# All that can be pending: every result is asked for, if late.
_WORKS = 65536
# So many dropped works are looked at with each new one.
_LOOKED_AT = 4
# So many works that nobody has waited for outlive what Python knew of them.
_UNWAITED = 256


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


def _is_ours(error: BaseException | None) -> bool:
    """Whether it follows from a failed call: the others know of that already."""
    while error is not None:
        if isinstance(error, DistBackendError):
            return True
        error = error.__cause__ or error.__context__
    return False


class World:
    """An open rdl_world, and the calls on it whose results are not known."""

    def __init__(self, store: Any, rank: int, size: int, timeout_ms: int, is_default: bool):
        """is_default: of the default group, which is the one that a launcher knows of."""
        self.lib = rdl.library()
        self.functions = rdl.functions()
        self.rank = rank
        self.size = size
        self.watcher = Watcher(self)
        self._process = os.getpid()
        self._pending: dict[int, Pending] = {}
        # Those whose works the program has dropped: nobody else will ask for them.
        self.dropped: deque[Pending] = deque()
        # Works which nobody has waited for, and Python has dropped: the last of them.
        self.unwaited: deque[RaddleWork] = deque(maxlen=_UNWAITED)
        self.pointer: int | None = self._open(store, rank, size, timeout_ms, is_default)
        atexit.register(self.leave)

    def _open(self, store: Any, rank: int, size: int, timeout_ms: int,
              is_default: bool) -> int | None:
        options = rdl.WorldOptions(timeout_ms=timeout_ms, works=_WORKS)
        if "RADDLE_START_TIMEOUT" not in os.environ:
            options.start_timeout_ms = timeout_ms
        if not (is_default and _started_by_raddle(rank, size)):
            options.rank = rank
            options.size = size
            options.job = _meeting_name(store, rank) if size > 1 else b""
        pointer = c_void_p()
        _errors.check(self.lib.rdl_world_open(byref(options), byref(pointer)))
        return pointer.value

    # --- what is pending ------------------------------------------------------

    def remember(self, pending: Pending) -> None:
        self._pending[id(pending)] = pending
        if self.dropped:
            self.sweep()

    def sweep(self) -> None:
        """Looks whether some of what the program has dropped is done."""
        for _ in range(min(len(self.dropped), _LOOKED_AT)):
            old = self.dropped.popleft()
            if not old.test():
                self.dropped.append(old)

    def forget(self, pending: Pending) -> None:
        self._pending.pop(id(pending), None)

    def account(self) -> rdl.Account:
        account = rdl.Account()
        _errors.check(self.lib.rdl_account_read(self.pointer, byref(account)))
        return account

    # --- the end --------------------------------------------------------------

    def close(self) -> None:
        """Waits for what is pending, but not for what others may never send, and leaves
        the job."""
        if self.pointer is None:
            return
        for pending in list(self._pending.values()):
            try:
                pending.give_up()
                pending.wait(0)
            except Exception:  # whoever asks for that call's result gets it
                pass
        self.watcher.close()
        atexit.unregister(self.leave)
        pointer, self.pointer = self.pointer, None
        self.lib.rdl_world_close(pointer)

    def leave(self) -> None:
        """The process ends without having destroyed its groups. Waits for nobody, and frees
        nothing, as other threads may be inside calls; the others are told why, if this is
        no ordinary end."""
        if self.pointer is None or self._process != os.getpid():
            return
        error = getattr(sys, "last_value", None)
        going = [pending for pending in list(self._pending.values()) if not pending.test()]
        if error is not None and not _is_ours(error):
            self._abort(f"{type(error).__name__}: {error}")
        elif going:
            self._abort(f"it has exited while {len(going)} calls were pending")
        else:
            self.lib.rdl_world_leave(self.pointer)

    def _abort(self, reason: str) -> None:
        self.lib.rdl_world_abort(self.pointer, reason.encode())
