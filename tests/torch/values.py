# SPDX-License-Identifier: BSD-3-Clause
"""Tensors for tests of collectives: small values, which add without rounding."""

import torch
import torch.distributed as dist

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)
BYTES = (torch.float8_e4m3fn, torch.float8_e5m2)

ADDED = (*INTEGERS, *FLOATS)
"""Those which are reduced in every way that suits numbers."""

MOVED = (*ADDED, torch.bool, *UNSIGNED, *COMPLEX, *BYTES)
"""Those which travel."""

GAP = 1
"""What lies between the elements of a strided tensor."""


def values(rank: int, dtype: torch.dtype, *shape: int, salt: int = 0) -> torch.Tensor:
    """What rank contributes; every rank can say it of every other. 1 to 4."""
    generator = torch.Generator().manual_seed(7919 * rank + salt)
    whole = torch.randint(1, 5, shape, generator=generator)
    if dtype == torch.bool:
        return whole > 2
    if dtype.is_complex:
        other = torch.randint(1, 5, shape, generator=generator)
        return torch.complex(whole.double(), other.double()).to(dtype)
    return whole.to(torch.float32).to(dtype) if dtype in BYTES else whole.to(dtype)


def laid(tensor: torch.Tensor, contiguous: bool) -> torch.Tensor:
    """The same values, with gaps between them if not contiguous."""
    if contiguous:
        return tensor.clone()
    wide = torch.full((*tensor.shape, 2), GAP, dtype=torch.int64)
    wide = wide.to(torch.float32).to(tensor.dtype) if tensor.dtype in BYTES else wide.to(
        tensor.dtype
    )
    strided = wide[..., 0]
    strided.copy_(tensor)
    return strided


def gaps_are_whole(tensor: torch.Tensor) -> bool:
    """Whether nothing was written beside a tensor which laid() made."""
    base = tensor._base
    if base is None or tensor.numel() == 0:
        return True
    return bool((base[..., 1].to(torch.complex128) == GAP).all())


def same(found: torch.Tensor, wanted: torch.Tensor, what: object = "") -> None:
    """AssertionError unless shape, dtype and every bit of the values agree."""
    assert found.shape == wanted.shape and found.dtype == wanted.dtype, what
    assert gaps_are_whole(found), f"{what}: something was written between the elements"
    if not torch.equal(_bytes(found), _bytes(wanted)):
        raise AssertionError(f"{what}: found {found.tolist()}, wanted {wanted.tolist()}")


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    dense = tensor.detach().clone(memory_format=torch.contiguous_format)
    return dense.view(-1).view(torch.uint8)


def waited(work: object, beside: bool) -> None:
    """Waits for an asynchronous call; a blocking one has returned no work."""
    if beside:
        work.wait()  # type: ignore[attr-defined]
        assert work.is_completed()  # type: ignore[attr-defined]


def cases(dtypes: tuple) -> list[tuple]:
    """dtype, whether beside the program, whether contiguous."""
    return [(d, b, c) for d in dtypes for b in (False, True) for c in (True, False)]


def world() -> tuple[int, int]:
    return dist.get_rank(), dist.get_world_size()
