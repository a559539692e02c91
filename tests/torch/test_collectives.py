# SPDX-License-Identifier: BSD-3-Clause
"""Every collective against what one process computes from all ranks' inputs.

Each body goes through dtypes, blocking and beside the program, contiguous or with
gaps, and through sizes which are inline, staged and odd.
"""

from functools import reduce

import pytest
import torch
import torch.distributed as dist
from values import ADDED, COMPLEX, FLOATS, INTEGERS, MOVED, cases, laid, same, values, waited, world

SIZES = (0, 1, 5, 1003)

LONG = pytest.mark.soak

RANKS = pytest.mark.parametrize(
    "size", [pytest.param(2, marks=LONG), 3, pytest.param(4, marks=LONG)]
)


def _inputs(dtype: torch.dtype, count: int) -> list[torch.Tensor]:
    return [values(r, dtype, count) for r in range(world()[1])]


def _combine(op: dist.ReduceOp, tensors: list[torch.Tensor]) -> torch.Tensor:
    """In the order of ranks; a mean of floats divides the sum."""
    if tensors[0].dtype == torch.bool:
        both = torch.logical_and if op in (dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN) else (
            torch.logical_or
        )
        return reduce(both, tensors)
    if op == dist.ReduceOp.AVG:
        if tensors[0].is_complex():
            parts = [torch.view_as_real(t) for t in tensors]
            return torch.view_as_complex(_combine(op, parts))
        total = reduce(torch.add, [t.double() for t in tensors])
        return (total / len(tensors)).to(tensors[0].dtype)
    plain = {
        dist.ReduceOp.SUM: torch.add,
        dist.ReduceOp.PRODUCT: torch.mul,
        dist.ReduceOp.MIN: torch.minimum,
        dist.ReduceOp.MAX: torch.maximum,
        dist.ReduceOp.BAND: torch.bitwise_and,
        dist.ReduceOp.BOR: torch.bitwise_or,
        dist.ReduceOp.BXOR: torch.bitwise_xor,
    }
    return reduce(plain[op], tensors)


def _reductions(dtype: torch.dtype) -> list[dist.ReduceOp]:
    op = dist.ReduceOp
    if dtype in COMPLEX:
        return [op.SUM, op.AVG]
    all_have = [op.SUM, op.PRODUCT, op.MIN, op.MAX]
    if dtype in INTEGERS:
        return [*all_have, op.BAND, op.BOR, op.BXOR]
    return [*all_have, op.AVG] if dtype in FLOATS else all_have


def all_reduce() -> None:
    for dtype, beside, contiguous in cases((*ADDED, torch.bool, *COMPLEX)):
        for count in SIZES:
            for op in _reductions(dtype):
                tensor = laid(values(dist.get_rank(), dtype, count), contiguous)
                waited(dist.all_reduce(tensor, op, async_op=beside), beside)
                wanted = _combine(op, _inputs(dtype, count))
                same(tensor, wanted, (dtype, count, op, beside, contiguous))


@RANKS
def test_all_reduce_combines_every_rank_once(pools, size):
    pools.run(size, all_reduce)


def reduce_to_each() -> None:
    rank, size = world()
    for dtype, beside, contiguous in cases((*ADDED, torch.bool)):
        for root in range(size):
            own = values(rank, dtype, 5)
            tensor = laid(own, contiguous)
            waited(dist.reduce(tensor, root, async_op=beside), beside)
            wanted = _combine(dist.ReduceOp.SUM, _inputs(dtype, 5)) if rank == root else own
            same(tensor, wanted, (dtype, root, beside, contiguous))


@RANKS
def test_reduce_writes_at_the_root_alone(pools, size):
    pools.run(size, reduce_to_each)


def broadcast() -> None:
    rank, size = world()
    for dtype, beside, contiguous in cases(MOVED):
        for count in SIZES:
            for root in range(size):
                tensor = laid(values(rank, dtype, count), contiguous)
                waited(dist.broadcast(tensor, root, async_op=beside), beside)
                same(tensor, values(root, dtype, count), (dtype, count, root, beside))


@RANKS
def test_broadcast_gives_all_what_the_root_has(pools, size):
    pools.run(size, broadcast)


def all_gather() -> None:
    rank, size = world()
    for dtype, beside, contiguous in cases(MOVED):
        for count in SIZES:
            wanted = _inputs(dtype, count)
            tensor = laid(values(rank, dtype, count), contiguous)
            outputs = [laid(torch.zeros_like(t), contiguous) for t in wanted]
            waited(dist.all_gather(outputs, tensor, async_op=beside), beside)
            for found, right in zip(outputs, wanted, strict=True):
                same(found, right, (dtype, count, beside, contiguous))


@RANKS
def test_all_gather_gives_all_to_all(pools, size):
    pools.run(size, all_gather)


def all_gather_uneven() -> None:
    rank, size = world()
    for beside in (False, True):
        wanted = [values(r, torch.float32, 3 * r + 1) for r in range(size)]
        outputs = [torch.zeros_like(t) for t in wanted]
        waited(dist.all_gather(outputs, wanted[rank].clone(), async_op=beside), beside)
        for found, right in zip(outputs, wanted, strict=True):
            same(found, right, beside)


@RANKS
def test_all_gather_takes_blocks_of_different_sizes(pools, size):
    pools.run(size, all_gather_uneven)


def all_gather_into_tensor() -> None:
    rank, size = world()
    for dtype, beside, contiguous in cases(MOVED):
        for count in SIZES:
            inputs = _inputs(dtype, count)
            for wanted in (torch.cat(inputs), torch.stack(inputs)):
                tensor = laid(inputs[rank], contiguous)
                output = laid(torch.zeros_like(wanted), contiguous)
                waited(dist.all_gather_into_tensor(output, tensor, async_op=beside), beside)
                same(output, wanted, (dtype, count, beside, contiguous))


@RANKS
def test_all_gather_into_tensor_joins_or_stacks(pools, size):
    pools.run(size, all_gather_into_tensor)


def gather() -> None:
    rank, size = world()
    for dtype, beside, contiguous in cases(MOVED):
        for root in range(size):
            wanted = _inputs(dtype, 5)
            tensor = laid(values(rank, dtype, 5), contiguous)
            outputs = [laid(torch.zeros_like(t), contiguous) for t in wanted]
            given = outputs if rank == root else None
            waited(dist.gather(tensor, given, root, async_op=beside), beside)
            for found, right in zip(given or [], wanted):
                same(found, right, (dtype, root, beside, contiguous))


@RANKS
def test_gather_brings_all_to_the_root(pools, size):
    pools.run(size, gather)


def scatter() -> None:
    rank, size = world()
    for dtype, beside, contiguous in cases(MOVED):
        for root in range(size):
            parts = _inputs(dtype, 5)
            given = [laid(part, contiguous) for part in parts] if rank == root else None
            tensor = laid(torch.zeros_like(parts[0]), contiguous)
            waited(dist.scatter(tensor, given, root, async_op=beside), beside)
            same(tensor, parts[rank], (dtype, root, beside, contiguous))


@RANKS
def test_scatter_gives_each_its_part(pools, size):
    pools.run(size, scatter)


def _parts(rank: int, dtype: torch.dtype, count: int) -> list[torch.Tensor]:
    """What rank contributes for each member."""
    return [values(rank, dtype, count, salt=1 + r) for r in range(world()[1])]


def reduce_scatter() -> None:
    rank, size = world()
    for dtype, beside, contiguous in cases(ADDED):
        for count in SIZES:
            for op in _reductions(dtype):
                parts = [laid(part, contiguous) for part in _parts(rank, dtype, count)]
                output = laid(torch.zeros(count, dtype=dtype), contiguous)
                waited(dist.reduce_scatter(output, parts, op, async_op=beside), beside)
                mine = [_parts(r, dtype, count)[rank] for r in range(size)]
                same(output, _combine(op, mine), (dtype, count, op, beside))


@RANKS
def test_reduce_scatter_combines_each_part_at_its_rank(pools, size):
    pools.run(size, reduce_scatter)


def reduce_scatter_tensor() -> None:
    rank, size = world()
    for dtype, beside, contiguous in cases(ADDED):
        for count in SIZES:
            for joined in (torch.cat, torch.stack):
                tensor = laid(joined(_parts(rank, dtype, count)), contiguous)
                output = laid(torch.zeros(count, dtype=dtype), contiguous)
                waited(dist.reduce_scatter_tensor(output, tensor, async_op=beside), beside)
                mine = [_parts(r, dtype, count)[rank] for r in range(size)]
                wanted = _combine(dist.ReduceOp.SUM, mine)
                same(output, wanted, (dtype, count, beside, contiguous))


@RANKS
def test_reduce_scatter_tensor_takes_joined_or_stacked_parts(pools, size):
    pools.run(size, reduce_scatter_tensor)


def all_to_all() -> None:
    rank, size = world()
    for dtype, beside, contiguous in cases(MOVED):
        for count in SIZES:
            given = [laid(part, contiguous) for part in _parts(rank, dtype, count)]
            taken = [laid(torch.zeros_like(part), contiguous) for part in given]
            waited(dist.all_to_all(taken, given, async_op=beside), beside)
            for r, found in enumerate(taken):
                same(found, _parts(r, dtype, count)[rank], (dtype, count, beside))


@RANKS
def test_all_to_all_gives_each_its_part_of_each(pools, size):
    pools.run(size, all_to_all)


def all_to_all_single() -> None:
    rank, size = world()
    for dtype, beside, contiguous in cases(MOVED):
        for count in SIZES:
            given = laid(torch.cat(_parts(rank, dtype, count)), contiguous)
            taken = laid(torch.zeros_like(given), contiguous)
            waited(dist.all_to_all_single(taken, given, async_op=beside), beside)
            wanted = torch.cat([_parts(r, dtype, count)[rank] for r in range(size)])
            same(taken, wanted, (dtype, count, beside, contiguous))


@RANKS
def test_all_to_all_single_shares_a_tensor_equally(pools, size):
    pools.run(size, all_to_all_single)


def all_to_all_splits() -> None:
    """Rank r gives r * size + s rows to rank s; some give none."""
    rank, size = world()
    rows = [[(r * size + s) % 5 for s in range(size)] for r in range(size)]
    for dtype, beside, contiguous in cases((torch.int64, torch.bfloat16, *COMPLEX)):
        sent = [values(rank, dtype, n, 3, salt=s) for s, n in enumerate(rows[rank])]
        wanted = [values(r, dtype, rows[r][rank], 3, salt=rank) for r in range(size)]
        given = laid(torch.cat(sent), contiguous)
        taken = laid(torch.zeros_like(torch.cat(wanted)), contiguous)
        splits = [row[rank] for row in rows]
        work = dist.all_to_all_single(taken, given, splits, rows[rank], async_op=beside)
        waited(work, beside)
        same(taken, torch.cat(wanted), (dtype, beside, contiguous))


@RANKS
def test_all_to_all_single_takes_uneven_rows(pools, size):
    pools.run(size, all_to_all_splits)


def ring() -> None:
    rank, size = world()
    right, left = (rank + 1) % size, (rank - 1) % size
    for dtype, beside, contiguous in cases(MOVED):
        for count in SIZES:
            own = laid(values(rank, dtype, count), contiguous)
            other = laid(torch.zeros_like(own), contiguous)
            ops = [dist.P2POp(dist.isend, own, right), dist.P2POp(dist.irecv, other, left)]
            for work in dist.batch_isend_irecv(ops[::-1] if rank % 2 else ops):
                work.wait()
            same(other, values(left, dtype, count), (dtype, count, contiguous))


@RANKS
def test_a_batch_of_sends_and_receives_goes_round_the_ring(pools, size):
    pools.run(size, ring)


def pairs() -> None:
    rank, size = world()
    for dtype, beside, contiguous in cases(MOVED):
        for peer in range(size):
            if peer == rank:
                continue
            own = laid(values(rank, dtype, 7), contiguous)
            other = laid(torch.zeros_like(own), contiguous)
            if beside:
                works = [dist.isend(own, peer), dist.irecv(other, peer)]
                for work in works:
                    work.wait()
            elif rank < peer:
                dist.send(own, peer)
                dist.recv(other, peer)
            else:
                dist.recv(other, peer)
                dist.send(own, peer)
            same(other, values(peer, dtype, 7), (dtype, peer, beside, contiguous))


def any_source() -> None:
    rank, size = world()
    if rank == 0:
        seen = {}
        for _ in range(1, size):
            tensor = torch.zeros(3, dtype=torch.int64)
            source = dist.recv(tensor)
            seen[source] = tensor.tolist()
        assert seen == {r: [r, r, r] for r in range(1, size)}
    else:
        dist.send(torch.full((3,), rank), 0)


@RANKS
def test_ranks_send_and_receive_in_pairs(pools, size):
    pools.run(size, pairs)


@RANKS
def test_a_receive_from_anyone_says_who_has_sent(pools, size):
    pools.run(size, any_source)


def coalesced() -> None:
    rank, size = world()
    counts = (1, 4, 300)
    for beside in (False, True):
        tensors = [values(rank, torch.float32, n) for n in counts]
        dist.all_reduce_coalesced(tensors)
        for tensor, n in zip(tensors, counts):
            same(tensor, _combine(dist.ReduceOp.SUM, _inputs(torch.float32, n)))
        outputs = [torch.zeros(size * n) for n in counts]
        with dist._coalescing_manager(async_ops=beside) as manager:
            for output, n in zip(outputs, counts):
                dist.all_gather_into_tensor(output, values(rank, torch.float32, n))
        if beside:
            manager.wait()
        for output, n in zip(outputs, counts):
            same(output, torch.cat(_inputs(torch.float32, n)), n)
        halves = [torch.zeros(n) for n in counts]
        with dist._coalescing_manager(async_ops=beside) as manager:
            for half, n in zip(halves, counts):
                dist.reduce_scatter_tensor(half, torch.cat(_parts(rank, torch.float32, n)))
        if beside:
            manager.wait()
        for half, n in zip(halves, counts):
            mine = [_parts(r, torch.float32, n)[rank] for r in range(size)]
            same(half, _combine(dist.ReduceOp.SUM, mine), n)


@RANKS
def test_coalesced_calls_are_each_right(pools, size):
    pools.run(size, coalesced)


def objects() -> None:
    rank, size = world()
    mine = {"rank": rank, "text": "x" * (rank + 1) * 1000, "list": [None, rank]}
    every = [None] * size
    dist.all_gather_object(every, mine)
    assert [one["rank"] for one in every] == list(range(size))
    assert every[rank] == mine
    shared = [mine, rank] if rank == size - 1 else [None, None]
    dist.broadcast_object_list(shared, src=size - 1)
    assert shared[0]["rank"] == size - 1 and shared[1] == size - 1
    part = [None]
    dist.scatter_object_list(part, list(range(size)) if rank == 0 else None, src=0)
    assert part == [rank]
    brought = [None] * size if rank == 0 else None
    dist.gather_object(mine, brought, dst=0)
    assert rank != 0 or [one["rank"] for one in brought] == list(range(size))


@RANKS
def test_objects_travel(pools, size):
    pools.run(size, objects)


def subgroup() -> None:
    """Roots and peers are numbers of the world; members in another order keep theirs."""
    rank, size = world()
    members = [size - 1, 0]
    group = dist.new_group(members)
    if rank in members:
        digits = torch.tensor([10**rank])
        dist.all_reduce(digits, group=group)
        assert digits.item() == sum(10**member for member in members)
        token = torch.tensor([rank])
        dist.broadcast(token, src=size - 1, group=group)
        assert token.item() == size - 1
        gathered = [torch.zeros(1, dtype=torch.int64) for _ in members]
        dist.all_gather(gathered, torch.tensor([rank]), group=group)
        assert [int(one) for one in gathered] == [0, size - 1]
    dist.barrier()
    if rank in members:
        dist.destroy_process_group(group)


@RANKS
def test_a_subgroup_has_its_own_members_alone(pools, size):
    pools.run(size, subgroup)


def premul() -> None:
    rank, size = world()
    for dtype in FLOATS:
        op = dist._make_nccl_premul_sum(0.5)
        tensor = torch.full((1003,), rank + 1, dtype=dtype)
        dist.all_reduce(tensor, op)
        same(tensor, torch.full((1003,), size * (size + 1) / 4, dtype=dtype), dtype)


@RANKS
def test_a_premultiplied_sum_scales_each_input(pools, size):
    pools.run(size, premul)


def many_works() -> list[float]:
    """Issued at once, waited for backwards; futures give the results too."""
    rank, size = world()
    tensors = [torch.full((n,), float(rank + n)) for n in range(1, 200)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    futures = [work.get_future() for work in works[::7]]
    for work in reversed(works):
        work.wait()
    for n, tensor in zip(range(1, 200), tensors):
        assert tensor.tolist() == [sum(r + n for r in range(size))] * n
    return [float(future.wait()[0][0]) for future in futures]


@RANKS
def test_works_are_waited_for_in_any_order(pools, size):
    wanted = [float(sum(r + n for r in range(size))) for n in range(1, 200, 7)]
    assert pools.run(size, many_works) == [wanted] * size
