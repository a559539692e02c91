# SPDX-License-Identifier: BSD-3-Clause
"""Statuses of the library as Python's exceptions."""

from __future__ import annotations

from torch.distributed import DistBackendError

from raddle import _library as rdl

# What is not here is DistBackendError: mismatch, death, timeout, and all that went wrong
# beyond this rank's own arguments.
_KINDS = {
    rdl.INVALID: RuntimeError,
    rdl.STATE: RuntimeError,
    rdl.UNSUPPORTED: RuntimeError,
    rdl.NO_MEMORY: MemoryError,
}


def error(status: int, sentence: str) -> Exception:
    """The exception for a status with its sentence. A timeout says that word too, for
    which programs look."""
    if status == rdl.TIMEOUT:
        sentence += " (a timeout of the call)"
    return _KINDS.get(status, DistBackendError)(sentence)


def last(status: int) -> Exception:
    """The exception for the call that has just failed on this thread."""
    return error(status, rdl.sentence())


def check(status: int) -> None:
    if status:
        raise last(status)
