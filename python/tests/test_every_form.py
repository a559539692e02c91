# SPDX-License-Identifier: BSD-3-Clause
"""Each collective once in every form of c10d, against what it must come to."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

WHOLE = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16,
         torch.uint32, torch.uint64]
REAL = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
BYTES = [torch.float8_e4m3fn, torch.float8_e5m2]


def values(rank: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    return (torch.arange(count) % 5 + rank).to(dtype)


def _every_dtype(rank: int, size: int) -> None:
    for dtype in WHOLE + REAL + COMPLEX:
        tensor = values(rank, 7, dtype)
        dist.all_reduce(tensor)
        wanted = sum(values(r, 7, torch.int64) for r in range(size)).to(dtype)
        assert torch.equal(tensor, wanted), dtype
    for dtype in WHOLE + REAL + COMPLEX + BYTES + [torch.bool]:
        gathered = torch.empty(7 * size, dtype=dtype)
        dist.all_gather_single(gathered, values(rank, 7, dtype))
        wanted = torch.cat([values(r, 7, dtype) for r in range(size)])
        assert torch.equal(gathered.view(torch.uint8), wanted.view(torch.uint8)), dtype


def test_every_dtype_is_summed_and_gathered(run_ranks):
    run_ranks(_every_dtype, 3)


def _every_reduction(rank: int, size: int) -> None:
    op = dist.ReduceOp
    numbers = list(range(1, size + 1))
    for reduction, dtype, wanted in (
            (op.SUM, torch.int32, sum(numbers)), (op.PRODUCT, torch.int64, 6),
            (op.MIN, torch.float32, 1), (op.MAX, torch.float16, size),
            (op.AVG, torch.float64, sum(numbers) / size), (op.AVG, torch.complex64, 2),
            (op.BAND, torch.int32, 0), (op.BOR, torch.uint8, 3), (op.BXOR, torch.int16, 0),
            (dist._make_nccl_premul_sum(0.5), torch.float32, 3)):
        tensor = torch.full((3,), rank + 1, dtype=dtype)
        dist.all_reduce(tensor, reduction)
        assert torch.equal(tensor, torch.full((3,), wanted, dtype=dtype)), (reduction, dtype)
    truth = torch.tensor([rank == 1, True])
    dist.all_reduce(truth, op.MIN)
    assert truth.tolist() == [False, True]


def test_every_reduction_is_right(run_ranks):
    run_ranks(_every_reduction, 3)


def _lists(rank: int, size: int) -> None:
    x = torch.arange(4.0) + 10 * rank
    outputs = [torch.empty(4) for _ in range(size)]
    dist.all_gather(outputs, x)
    assert [o[0].item() for o in outputs] == [10.0 * r for r in range(size)]
    uneven = [torch.empty(r + 1) for r in range(size)]
    dist.all_gather(uneven, torch.full((rank + 1,), float(rank)))
    assert [o.tolist() for o in uneven] == [[float(r)] * (r + 1) for r in range(size)]
    output = torch.empty(4)
    dist.reduce_scatter(output, [torch.full((4,), float(r)) for r in range(size)])
    assert output.tolist() == [size * rank] * 4
    output = torch.empty(rank + 1)
    dist.reduce_scatter(output, [torch.ones(r + 1) for r in range(size)])
    assert output.tolist() == [size] * (rank + 1)
    outputs = [torch.empty(r + 1) for r in range(size)]
    dist.all_to_all(outputs, [torch.full((rank + 1,), float(rank)) for r in range(size)])
    assert [o.tolist() for o in outputs] == [[float(r)] * (r + 1) for r in range(size)]
    parts = [torch.full((2,), float(r)) for r in range(size)] if rank == 1 else None
    mine = torch.empty(2)
    dist.scatter(mine, parts, src=1)
    assert mine.tolist() == [rank, rank]
    outputs = [torch.empty(2) for _ in range(size)] if rank == 2 else None
    dist.gather(mine, outputs, dst=2)
    assert rank != 2 or [o[0].item() for o in outputs] == [0, 1, 2]


def test_list_forms_are_right_also_with_uneven_blocks(run_ranks):
    run_ranks(_lists, 3)


def _single(rank: int, size: int) -> None:
    x = torch.ones(size, 2) * (rank + 1)
    output = torch.empty(2)
    dist.reduce_scatter_single(output, x)
    assert output.tolist() == [6, 6]
    output = torch.empty(size, 2)
    dist.all_to_all_single(output, x)
    assert output[:, 0].tolist() == [1, 2, 3]
    taken = torch.empty(size * (rank + 1))
    dist.all_to_all_single(taken, torch.full((6,), float(rank)), [rank + 1] * size, [1, 2, 3])
    assert taken.tolist() == [float(r) for r in range(size) for _ in range(rank + 1)]
    x = torch.full((2,), float(rank))
    dist.broadcast(x, src=2)
    assert x.tolist() == [2, 2]
    dist.reduce(x, dst=1)
    assert rank != 1 or x.tolist() == [6, 6]
    dist.barrier()
    dist.barrier(device_ids=[0])


def test_single_forms_are_right(run_ranks):
    run_ranks(_single, 3)


def _strided(rank: int, size: int, beside: bool) -> None:
    def view() -> torch.Tensor:
        return torch.arange(12.0).reshape(3, 4).t()

    x = view()
    work = dist.all_reduce(x, async_op=beside)
    if beside:
        work.wait()
    assert torch.equal(x, view() * size)
    outputs = [torch.zeros(4, 6)[:, ::2] for _ in range(size)]
    work = dist.all_gather(outputs, view() + rank, async_op=beside)
    if beside:
        work.wait()
    for r in range(size):
        assert torch.equal(outputs[r], view() + r)
    whole = torch.zeros(size * 4, 6)[:, ::2]
    work = dist.all_gather_single(whole, view() + rank, async_op=beside)
    if beside:
        work.wait()
    assert torch.equal(whole, torch.cat([view() + r for r in range(size)]))


@pytest.mark.parametrize("beside", [False, True])
def test_tensors_that_are_not_contiguous_come_out_right(run_ranks, beside):
    run_ranks(_strided, 2, beside)


def _coalesced(rank: int, size: int) -> None:
    group = dist.group.WORLD
    tensors = [torch.full((i + 1,), float(rank)) for i in range(5)]
    with c10d._coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    assert all(t[0].item() == sum(range(size)) for t in tensors)
    outputs = [torch.empty(2 * size), torch.empty(3 * size, dtype=torch.int32)]
    inputs = [torch.full((2,), float(rank)), torch.full((3,), rank, dtype=torch.int32)]
    group.allgather_into_tensor_coalesced(outputs, inputs).wait()
    assert outputs[0].tolist() == [0, 0, 1, 1] and outputs[1].tolist() == [0, 0, 0, 1, 1, 1]
    outputs = [torch.empty(1), torch.empty(2)]
    group.reduce_scatter_tensor_coalesced(outputs, [torch.ones(2), torch.ones(4)]).wait()
    assert outputs[1].tolist() == [2, 2]
    lists = [[torch.empty(2), torch.empty(1)] for _ in range(size)]
    group.allgather_coalesced(lists, [torch.full((2,), float(rank)), torch.ones(1)]).wait()
    assert [outputs[0][0].item() for outputs in lists] == [0, 1]
    with c10d._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
        first, second = torch.ones(3), torch.full((1,), rank)
        group.allreduce([first])
        group.broadcast([second], root=1)
    manager.wait()
    assert first.tolist() == [2, 2, 2] and second.item() == 1


def test_coalesced_forms_are_right(run_ranks):
    run_ranks(_coalesced, 2)


def _separate_arguments(rank: int, size: int) -> None:
    group = dist.group.WORLD
    x = torch.full((2,), float(rank + 1))
    group.allreduce(x, dist.ReduceOp.MAX).wait()
    assert x.tolist() == [2, 2]
    group.allreduce([x], op=dist.ReduceOp.SUM).wait()
    assert x.tolist() == [4, 4]
    y = torch.tensor([float(rank)])
    group.broadcast(y, 1).wait()
    assert y.item() == 1
    group.reduce(y, root=0, op=dist.ReduceOp.SUM).wait()
    assert rank != 0 or y.item() == 2
    outputs = [torch.empty(1) for _ in range(size)]
    group.allgather(outputs, torch.tensor([float(rank)])).wait()
    assert [o.item() for o in outputs] == [0, 1]
    group.scatter(y, [torch.ones(1), torch.zeros(1)] if rank == 0 else [], root=0).wait()
    assert y.item() == 1 - rank
    group.barrier().wait()


def test_methods_of_the_group_take_separate_arguments(run_ranks):
    run_ranks(_separate_arguments, 2)


def _objects(rank: int, size: int) -> None:
    found = [None] * size
    dist.all_gather_object(found, {"rank": rank, "text": "x" * 100 * rank})
    assert [f["rank"] for f in found] == list(range(size))
    one = [rank, "hello" if rank == 1 else None]
    dist.broadcast_object_list(one, src=1)
    assert one == [1, "hello"]


def test_objects_travel(run_ranks):
    run_ranks(_objects, 2)
