# SPDX-License-Identifier: BSD-3-Clause
"""A /dev/shm of 64 MiB for the processes that are forked meanwhile."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

BYTES = 64 << 20

_CLONE_NEWNS = 0x00020000
_MS_REC_PRIVATE = 0x4000 | (1 << 18)


@contextmanager
def small_shm() -> Iterator[bool]:
    """Whether it was possible: it takes the right to mount. This process is back in its
    own namespace afterwards; those that it has forked stay in the other."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.unshare(_CLONE_NEWNS) != 0:
            yield False
            return
        try:
            yield _mount(libc)
        finally:
            if libc.setns(home, 0) != 0:
                raise OSError(ctypes.get_errno(), "could not go back to the own namespace")
    finally:
        os.close(home)


def _mount(libc: ctypes.CDLL) -> bool:
    if libc.mount(None, b"/", None, _MS_REC_PRIVATE, None) != 0:
        return False
    options = f"size={BYTES}".encode()
    return libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, options) == 0


def used() -> int:
    """Bytes which are taken in /dev/shm."""
    place = os.statvfs("/dev/shm")
    return (place.f_blocks - place.f_bfree) * place.f_frsize
