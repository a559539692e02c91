# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch's tensors, dtypes and reductions are to the library."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch.distributed import ReduceOp

from raddle import _library as rdl


class Element(NamedTuple):
    """How an element of a dtype is sent: as `per` elements of the library's dtype."""

    dtype: int
    per: int
    reduces: bool  # whether sums of the parts are the sum of the whole


ELEMENTS: dict[torch.dtype, Element] = {
    torch.uint8: Element(rdl.UINT8, 1, True),
    torch.int8: Element(rdl.INT8, 1, True),
    torch.uint16: Element(rdl.UINT16, 1, True),
    torch.int16: Element(rdl.INT16, 1, True),
    torch.uint32: Element(rdl.UINT32, 1, True),
    torch.int32: Element(rdl.INT32, 1, True),
    torch.uint64: Element(rdl.UINT64, 1, True),
    torch.int64: Element(rdl.INT64, 1, True),
    torch.bool: Element(rdl.BOOL, 1, True),
    torch.float16: Element(rdl.FLOAT16, 1, True),
    torch.bfloat16: Element(rdl.BFLOAT16, 1, True),
    torch.float32: Element(rdl.FLOAT32, 1, True),
    torch.float64: Element(rdl.FLOAT64, 1, True),
    torch.complex32: Element(rdl.FLOAT16, 2, True),
    torch.complex64: Element(rdl.FLOAT32, 2, True),
    torch.complex128: Element(rdl.FLOAT64, 2, True),
}
# Floats of 8 bits and less are moved as bytes, and not added.
for _name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
              "float8_e8m0fnu", "float4_e2m1fn_x2"):
    if hasattr(torch, _name):
        ELEMENTS[getattr(torch, _name)] = Element(rdl.UINT8, 1, False)

REDUCTIONS: dict[int, int] = {
    int(ReduceOp.SUM): rdl.SUM,
    int(ReduceOp.AVG): rdl.AVG,
    int(ReduceOp.PRODUCT): rdl.PRODUCT,
    int(ReduceOp.MIN): rdl.MIN,
    int(ReduceOp.MAX): rdl.MAX,
    int(ReduceOp.BAND): rdl.BIT_AND,
    int(ReduceOp.BOR): rdl.BIT_OR,
    int(ReduceOp.BXOR): rdl.BIT_XOR,
    int(ReduceOp.PREMUL_SUM): rdl.PREMUL_SUM,
}
# Of complex numbers, what can be done to real and imaginary parts one by one.
_PARTWISE = (rdl.SUM, rdl.AVG, rdl.PREMUL_SUM)


def element(tensor: torch.Tensor) -> Element:
    """How the tensor's elements are sent. Raises for what cannot be sent at all."""
    if not tensor.is_cpu:
        raise RuntimeError(f"raddle: a tensor is on {tensor.device}, and this build of raddle "
                           "moves tensors of the CPU only")
    if tensor.layout is not torch.strided:
        raise RuntimeError(f"raddle: a tensor's layout is {tensor.layout}; only dense tensors "
                           "(torch.strided) can be sent, so call to_dense() first")
    found = ELEMENTS.get(tensor.dtype)
    if found is None:
        raise RuntimeError(f"raddle: elements of {tensor.dtype} cannot be sent")
    if found.per == 2 and tensor.is_conj():
        raise RuntimeError("raddle: a tensor is the conjugate of what lies in its memory; call "
                           "resolve_conj() first")
    return found


def reduction(op: ReduceOp, tensor: torch.Tensor, kind: Element) -> int:
    """The library's number for a reduction of such a tensor; raises if there is none."""
    # The comparison is three times as fast as the look-up, and sums are what is common.
    code = rdl.SUM if op == ReduceOp.SUM else REDUCTIONS.get(int(op.op))
    if code is None:
        raise RuntimeError(f"raddle: there is no reduction {op.op}")
    if not kind.reduces:
        raise RuntimeError(f"raddle: {tensor.dtype} can be moved, and not reduced; convert it to "
                           "a wider type first")
    if kind.per == 2 and code not in _PARTWISE:
        raise ValueError(f"raddle: {op.op} of complex numbers is not defined; sums and averages "
                         "are")
    return code


def factor(op: ReduceOp, code: int) -> float:
    """Of a PREMUL_SUM; 0 of all others, as rdl_call wants it."""
    if code != rdl.PREMUL_SUM:
        return 0.0
    value = op.factor
    return float(value.item() if isinstance(value, torch.Tensor) else value)
