# SPDX-License-Identifier: BSD-3-Clause
"""One thread of a world that settles calls nobody waits for: those that have a future,
and receives from any rank. The first such call starts it.

It sleeps on an eventfd, to which the library writes when a call is done.
"""

from __future__ import annotations

import os
import select
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raddle.torch._transfers import FromAnyone
    from raddle.torch._work import Pending
    from raddle.torch._world import World

_SOON_MS = 1


class Watcher:
    def __init__(self, world: World):
        self._world = world
        self._lock = threading.Lock()
        self._watched: list[Pending] = []
        self._seeking: list[FromAnyone] = []
        self._thread: threading.Thread | None = None
        self._descriptor = -1
        self._ends = False

    def watch(self, pending: Pending) -> None:
        """It will be settled when it is done.

        On the watcher's own thread it is settled at once: what runs there is a callback
        of another future, which may wait for this one before it returns.
        """
        if threading.current_thread() is self._thread:
            pending.finish_here()
            return
        with self._lock:
            if pending.done or pending.told:
                return
            self._begin()
            pending.told = True
            self._watched.append(pending)
            if pending.handle is not None:
                self.tell(pending)

    def tell(self, pending: Pending) -> None:
        """Its handle is there: the library will write when it is done. If it refuses,
        another thread has just asked for the result, and settles it."""
        self._world.lib.rdl_work_notify(self._world.pointer, pending.handle, self._descriptor)

    def seek(self, receive: FromAnyone) -> None:
        """Its sender will be looked for."""
        with self._lock:
            self._begin()
            self._seeking.append(receive)
        os.eventfd_write(self._descriptor, 1)

    def _begin(self) -> None:
        if self._thread is None:
            self._descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._thread = threading.Thread(target=self._serve, name="raddle watcher",
                                            daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        while not self._ends or self._watched:
            told = 0
            if poll.poll(_SOON_MS if self._seeking else None):
                told = os.eventfd_read(self._descriptor)
            self._go_round(told)

    def _go_round(self, told: int) -> None:
        """told: so many calls at most have been done since the last round. They are mostly
        the oldest, so that few of the others are looked at."""
        with self._lock:
            seeking, watched = list(self._seeking), list(self._watched)
        for receive in seeking:
            receive.seek()
        for pending in watched:
            if told <= 0:
                break
            told -= pending.test()
        with self._lock:
            self._seeking = [receive for receive in self._seeking if receive.handle is None
                             and not receive.done]
            self._watched = [pending for pending in self._watched if not pending.done]

    def close(self) -> None:
        """Ends the thread. What it watched has been settled."""
        if self._thread is None:
            return
        self._ends = True
        os.eventfd_write(self._descriptor, 1)
        if self._thread is not threading.current_thread():
            self._thread.join()
            os.close(self._descriptor)
