# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes that programs make, and numbers that other libraries get wrong.

Most cases are known from public reports. A rank's contribution is often a power of
ten, so that a sum spells who took part.
"""

import gc
import os
import random
import signal
import time
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as dist
from pool import Pool
from torch import nn

Error = dist.DistBackendError


def digits(group: Any = None) -> int:
    tensor = torch.tensor([10 ** dist.get_rank()])
    dist.all_reduce(tensor, group=group)
    return int(tensor)


def sentence(call: Any, *args: Any, **kwargs: Any) -> str:
    """What the error says that the call has to raise."""
    try:
        call(*args, **kwargs)
    except Error as error:
        return str(error)
    raise AssertionError("the call went well, and should have failed")


# --- calls that differ ------------------------------------------------------------


def counts_differ(odd: int, others: int) -> str:
    tensor = torch.ones(odd if dist.get_rank() == 0 else others)
    before = tensor.clone()
    text = sentence(dist.all_reduce, tensor)
    assert torch.equal(tensor, before)
    return text


@pytest.mark.parametrize("odd, others", [(409600, 409598), (1, 2), (262144, 524288)])
def test_different_counts_are_an_error_that_names_the_odd_rank(pools, odd, others):
    for text in pools.fresh(4, counts_differ, odd, others):
        assert str(odd) in text and str(others) in text and "rank 0" in text
        assert text.count("test_cases.py:") >= 1, text


def order_differs() -> str:
    first, second = (8, 24) if dist.get_rank() == 0 else (24, 8)
    text = sentence(dist.all_reduce, torch.ones(first))
    assert sentence(dist.all_reduce, torch.ones(second))
    return text


def kind_differs() -> str:
    tensor = torch.ones(1, dtype=torch.int64)
    if dist.get_rank() == 0:
        # The root has handed its part over, and hears of it with its next call.
        try:
            dist.broadcast(tensor, 0)
        except Error as error:
            return str(error)
        return sentence(dist.barrier)
    return sentence(dist.all_reduce, tensor)


def dtype_differs() -> str:
    dtype = torch.float32 if dist.get_rank() == 0 else torch.int32
    tensor = torch.ones(4, dtype=dtype)
    text = sentence(dist.all_reduce, tensor)
    assert tensor.tolist() == [1, 1, 1, 1]
    return text


def root_differs() -> str:
    tensor = torch.tensor([dist.get_rank()])
    try:
        dist.broadcast(tensor, dist.get_rank())
    except Error as error:
        return str(error)
    return sentence(dist.barrier)


def reduction_differs() -> str:
    op = dist.ReduceOp.SUM if dist.get_rank() == 0 else dist.ReduceOp.MAX
    return sentence(dist.all_reduce, torch.ones(3), op)


@pytest.mark.parametrize("body, words", [
    (order_differs, ["8", "24"]),
    (kind_differs, ["broadcast", "all_reduce"]),
    (dtype_differs, ["float32", "int32"]),
    (root_differs, ["root 0", "root 1"]),
    (reduction_differs, ["sum", "max"]),
])
def test_calls_that_differ_are_an_error_on_both_with_both_sides(pools, body, words):
    for text in pools.fresh(2, body):
        assert all(word in text for word in words), text
        assert "test_cases.py:" in text, text


def sizes_differ(count: int) -> str:
    if dist.get_rank() == 0:
        try:
            dist.send(torch.tensor([1.0, 2.0, 3.0]), 1)
        except Error as error:
            return str(error)
        return ""
    tensor = torch.full((count,), 777.0)
    text = sentence(dist.recv, tensor, 0)
    assert tensor[3:].tolist() == [777.0] * max(0, count - 3)
    return text


@pytest.mark.parametrize("count", [4, 5, 2])
def test_a_receive_of_another_size_is_an_error(pools, count):
    _, text = pools.fresh(2, sizes_differ, count)
    assert "3" in text and str(count) in text


def half_a_batch() -> str:
    rank = dist.get_rank()
    taken = torch.zeros(2)
    receive = dist.P2POp(dist.irecv, taken, 1 - rank)
    if rank == 1:
        for work in dist.batch_isend_irecv([receive]):
            work.wait()
        assert taken.tolist() == [5.0, 5.0]
        time.sleep(4)
        return ""
    send = dist.P2POp(dist.isend, torch.full((2,), 5.0), 1)
    works = dist.batch_isend_irecv([send, receive])
    return sentence(lambda: [work.wait() for work in works])


def test_a_send_without_its_answer_ends_at_the_limit(pools):
    text, _ = pools.fresh(2, half_a_batch, limit=2)
    assert "rank 1" in text and "2 s" in text, text


def dies() -> str:
    if dist.get_rank() == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    text = sentence(dist.all_reduce, torch.ones(4))
    assert time.monotonic() - began < 5
    with open(os.environ["RADDLE_TEST_FILE"] + str(dist.get_rank()), "w") as file:
        file.write(text)
    return text


def test_a_dead_rank_ends_the_waits_of_the_others(tmp_path, monkeypatch):
    monkeypatch.setenv("RADDLE_TEST_FILE", str(tmp_path / "said"))
    pool = Pool(4)
    with pytest.raises(AssertionError, match="rank 2 ---\nits process has ended"):
        pool.run(dies)
    for rank in (0, 1, 3):
        text = (tmp_path / f"said{rank}").read_text()
        assert "rank 2" in text and "gone" in text, text


# --- groups -------------------------------------------------------------------------


def own_lists(rounds: int) -> list[int]:
    rank = dist.get_rank()
    mine = [0, 3] if rank in (0, 3) else [1, 2]
    sums = set()
    for i in range(rounds):
        time.sleep(random.Random(1000 * i + rank).random() / 50)
        group = dist.new_group(mine, use_local_synchronization=True)
        dist.barrier(group)
        sums.add(digits(group))
        dist.destroy_process_group(group)
    return sorted(sums)


@pytest.mark.parametrize("rounds", [10, pytest.param(100, marks=pytest.mark.soak)])
def test_ranks_that_name_their_own_lists_meet_in_them(pools, rounds):
    assert pools.run(4, own_lists, rounds) == [[1001], [110], [110], [1001]]


def alone() -> int:
    group = dist.new_group([0])
    dist.barrier()
    if dist.get_rank() == 0:
        _all_of_a_group_of_one(group)
    return digits()


def _all_of_a_group_of_one(group: Any) -> None:
    given = torch.tensor([5.0, 6.0, 7.0])

    def out() -> torch.Tensor:
        return torch.full((3,), 777.0)

    for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
        tensor, scattered = given.clone(), out()
        dist.all_reduce(tensor, op, group=group)
        dist.reduce_scatter_tensor(scattered, given, op, group=group)
        assert torch.equal(tensor, given) and torch.equal(scattered, given)
    gathered, split, single = [out()], [out()], out()
    dist.all_gather(gathered, given, group=group)
    dist.all_to_all(split, [given], group=group)
    dist.all_to_all_single(single, given, group=group)
    dist.broadcast(given, 0, group=group)
    dist.barrier(group)
    for found in (gathered[0], split[0], single):
        assert found.tolist() == [5.0, 6.0, 7.0]


def test_a_group_of_one_writes_every_output(pools):
    assert pools.run(2, alone) == [11, 11]


def membership() -> dict:
    rank = dist.get_rank()
    group = dist.new_group([1, 3])
    found: dict = {}
    if rank in (1, 3):
        token = torch.tensor([10**rank])
        dist.broadcast(token, group=group, group_src=0)
        found["group root 0"] = int(token)
        token = torch.tensor([10**rank])
        dist.broadcast(token, 3, group=group)
        found["world root 3"] = int(token)
        with pytest.raises((ValueError, RuntimeError), match="0"):
            dist.broadcast(token, 0, group=group)
        parts = [torch.zeros(1, dtype=torch.int64) for _ in range(2)] if rank == 3 else None
        dist.gather(torch.tensor([10**rank]), parts, 3, group=group)
        found["gathered"] = [int(part) for part in parts or []]
    unsorted = dist.new_group([3, 1])
    if rank in (1, 3):
        token = torch.tensor([10**rank])
        dist.broadcast(token, group=unsorted, group_src=0)
        found["unsorted"] = int(token)
    dist.barrier()
    return found


def test_roots_are_numbers_of_the_world_or_of_the_group(pools):
    nothing, one, also_nothing, three = pools.run(4, membership)
    assert nothing == also_nothing == {}
    assert one["group root 0"] == three["group root 0"] == 10
    assert one["world root 3"] == three["world root 3"] == 1000
    assert one["unsorted"] == three["unsorted"]
    assert (one["gathered"], three["gathered"]) == ([], [10, 1000])


def not_a_member() -> None:
    group = dist.new_group([1])
    tensor = torch.tensor([7])
    if dist.get_rank() == 0:
        assert group == dist.GroupMember.NON_GROUP_MEMBER
        dist.broadcast(tensor, 1, group=group)
        assert tensor.item() == 7
    dist.barrier()


def test_who_is_no_member_changes_nothing(pools):
    """PyTorch warns and returns before a backend is asked."""
    pools.run(2, not_a_member)


# --- numbers ------------------------------------------------------------------------


def _reduced(dtype: torch.dtype, op: Any, values: list) -> list:
    """Each rank's values are a list, of which this rank gives its own."""
    tensor = torch.tensor(values[dist.get_rank()]).to(dtype)
    dist.all_reduce(tensor, op)
    return tensor.tolist()


def test_a_mean_of_integers_is_wide_and_goes_towards_zero(pools):
    most = 2**31 - 1
    values = [[7, -7, 3, most], [2, -2, 4, most]]
    for found in pools.run(2, _reduced, torch.int32, dist.ReduceOp.AVG, values):
        assert found == [4, -4, 3, most]


def test_a_mean_divides_by_the_ranks(pools):
    values = [[float((r + 1) * i) for i in range(1, 6)] for r in range(3)]
    for found in pools.run(3, _reduced, torch.float32, dist.ReduceOp.AVG, values):
        assert found == [2.0, 4.0, 6.0, 8.0, 10.0]


def scaled(factor: float, dtype: torch.dtype) -> float:
    tensor = torch.full((8,), dist.get_rank() + 1.0).to(dtype)
    dist.all_reduce(tensor, dist._make_nccl_premul_sum(factor))
    assert len(set(tensor.tolist())) == 1
    return tensor[0].item()


@pytest.mark.parametrize("factor, dtype, wanted", [
    (0.5, torch.bfloat16, 1.5),
    (3.0, torch.bfloat16, 9.0),
    (0.1, torch.bfloat16, 0.30078125),
    (0.1, torch.float16, 0.300048828125),
    (0.1, torch.float32, pytest.approx(0.3, abs=3e-8)),
])
def test_a_factor_of_16_bit_numbers_is_kept_wide(pools, factor, dtype, wanted):
    assert pools.run(2, scaled, factor, dtype) == [wanted, wanted]


def nan_wins(dtype: torch.dtype) -> None:
    rank = dist.get_rank()
    for op, other in ((dist.ReduceOp.MIN, 1.0), (dist.ReduceOp.MAX, 4.0)):
        for count in (1, 1003):
            for holder in range(4):
                tensor = torch.full((count,), rank + 1.0).to(dtype)
                if rank == holder:
                    tensor[-1] = float("nan")
                dist.all_reduce(tensor, op)
                assert tensor[-1].isnan() and tensor[:-1].tolist() == [other] * (count - 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_nan_is_the_least_and_the_greatest_wherever_it_is(pools, dtype):
    pools.run(4, nan_wins, dtype)


def sixteen_bits(dtype: torch.dtype, values: list) -> list[float]:
    results = set()
    for count in (1, 24063):
        for _ in range(10):
            tensor = torch.full((count,), float(values[dist.get_rank()])).to(dtype)
            dist.all_reduce(tensor)
            results.update(tensor.tolist())
    return sorted(results)


@pytest.mark.parametrize("dtype, values, wanted", [
    (torch.float16, [60000, 60000, -60000, -60000], 0.0),
    (torch.float16, [40000, 40000], float("inf")),
    pytest.param(torch.bfloat16, [256, *[1] * 7], 264.0, marks=pytest.mark.soak),
])
def test_16_bit_sums_are_rounded_once(pools, dtype, values, wanted):
    size = len(values)
    assert pools.run(size, sixteen_bits, dtype, values) == [[wanted]] * size


def test_sums_of_bools_are_bools(pools):
    values = [[True, True, False, False], [True, False, False, True], [True, True, False, True]]
    op = dist.ReduceOp
    for one in (op.SUM, op.MAX):
        assert pools.run(3, _reduced, torch.bool, one, values) == [[True, True, False, True]] * 3
    for one in (op.PRODUCT, op.MIN):
        assert pools.run(3, _reduced, torch.bool, one, values) == [[True, False, False, False]] * 3


def bytes_of_bools() -> list[int]:
    tensor = torch.tensor([True] * 300)
    dist.all_reduce(tensor)
    moved = torch.empty(600, dtype=torch.bool)
    dist.all_gather_into_tensor(moved, tensor)
    return sorted(set(tensor.view(torch.uint8).tolist()) | set(moved.view(torch.uint8).tolist()))


def test_a_bool_is_a_byte_of_0_or_1(pools):
    assert pools.run(2, bytes_of_bools) == [[1], [1]]


@pytest.mark.parametrize("dtype, op, values, wanted", [
    (torch.int8, dist.ReduceOp.SUM, [[120], [100]], [-36]),
    (torch.uint8, dist.ReduceOp.SUM, [[200], [100]], [44]),
], ids=["int8", "uint8"])
def test_integers_wrap(pools, dtype, op, values, wanted):
    assert pools.run(2, _reduced, dtype, op, values) == [wanted, wanted]


def wide(op: Any) -> int:
    mine = (2**63, 1)[dist.get_rank()] if op == dist.ReduceOp.MAX else 2**63
    tensor = torch.tensor([mine], dtype=torch.uint64)
    dist.all_reduce(tensor, op)
    return tensor.tolist()[0]


def test_unsigned_64_bits_wrap_and_compare_without_a_sign(pools):
    assert pools.run(2, wide, dist.ReduceOp.SUM) == [0, 0]
    assert pools.run(2, wide, dist.ReduceOp.MAX) == [2**63, 2**63]


def unsupported() -> int:
    for dtype, op in ((torch.bool, dist.ReduceOp.AVG), (torch.float32, dist.ReduceOp.BAND)):
        with pytest.raises((RuntimeError, ValueError, TypeError)) as caught:
            dist.all_reduce(torch.ones(4).to(dtype), op)
        assert len(str(caught.value)) > 20
    return digits()


def test_a_reduction_without_a_meaning_is_refused_and_nothing_breaks(pools):
    assert pools.run(2, unsupported) == [11, 11]


# --- buffers ------------------------------------------------------------------------


def no_rows() -> list:
    rank = dist.get_rank()
    given = torch.tensor([11, 12] if rank == 0 else [])
    splits = [1, 1] if rank == 0 else [0, 0]
    taken = torch.zeros(1)
    dist.all_to_all_single(taken, given.float(), [1, 0], splits)
    nothing = torch.zeros(0)
    dist.all_reduce(nothing)
    dist.broadcast(nothing, 0)
    dist.all_gather_into_tensor(nothing, torch.zeros(0))
    dist.reduce_scatter_tensor(nothing, torch.zeros(0))
    return [taken.tolist(), digits()]


def test_nothing_to_send_takes_part_in_the_order(pools):
    assert pools.run(2, no_rows) == [[[11.0], 11], [[12.0], 11]]


def uneven_gather() -> list:
    counts = [0, 3, 1, 0]
    mine = torch.tensor({1: [1, 2, 3], 2: [9]}.get(dist.get_rank(), []), dtype=torch.int64)
    outputs = [torch.zeros(n, dtype=torch.int64) for n in counts]
    dist.all_gather(outputs, mine)
    return torch.cat(outputs).tolist()


def test_some_may_have_nothing_in_a_gather(pools):
    assert pools.run(4, uneven_gather) == [[1, 2, 3, 9]] * 4


def in_place() -> list:
    rank, size = dist.get_rank(), dist.get_world_size()
    whole = torch.zeros(5 * size, dtype=torch.int32)
    mine = whole[5 * rank : 5 * rank + 5]
    mine.copy_(torch.arange(rank + 1, rank + 6))
    dist.all_gather_into_tensor(whole, mine)
    return whole.view(size, 5).tolist()


def test_a_gather_in_place_keeps_every_slot(pools):
    assert pools.run(3, in_place) == [[[r + 1 + i for i in range(5)] for r in range(3)]] * 3


def any_offset() -> None:
    rank = dist.get_rank()
    for offset in range(0, 64, 4):
        mine = (offset + 4 * rank) % 64 // 4
        base = torch.zeros(1027 + 16)
        tensor = base[mine : mine + 1027]
        tensor.copy_(torch.arange(1027.0) * (rank + 1))
        dist.all_reduce(tensor)
        assert torch.equal(tensor, 3 * torch.arange(1027.0)) and tensor.sum() == 1_580_553
        assert base[:mine].eq(0).all() and base[mine + 1027 :].eq(0).all()


def test_buffers_may_begin_anywhere(pools):
    pools.run(2, any_offset)


def reduce_leaves_others() -> list:
    tensor = torch.tensor([[[1, 2], [3, 4]], [[4, 5], [6, 7]]][dist.get_rank()])
    dist.reduce(tensor, 0)
    return tensor.tolist()


def test_a_reduce_leaves_what_others_have(pools):
    assert pools.run(2, reduce_leaves_others) == [[[5, 7], [9, 11]], [[4, 5], [6, 7]]]


def columns() -> None:
    rank = dist.get_rank()

    def column() -> torch.Tensor:
        return torch.tensor([[10 * rank + 1, 99], [10 * rank + 2, 99]])[:, 0]

    x = column()
    dist.broadcast(x, 0)
    assert x.tolist() == [1, 2]
    y = column()
    dist.reduce(y, 0)
    assert y.tolist() == ([12, 14] if rank == 0 else [11, 12])
    z = column()
    parts = [torch.tensor([[a, 99], [b, 99]])[:, 0] for a, b in ((5, 6), (7, 8))]
    dist.scatter(z, parts if rank == 0 else None, 0)
    assert z.tolist() == ([5, 6] if rank == 0 else [7, 8])
    outputs = [column() for _ in range(2)]
    dist.all_gather(outputs, column())
    assert [o.tolist() for o in outputs] == [[1, 2], [11, 12]]
    gathered = [column() for _ in range(2)] if rank == 0 else None
    dist.gather(column(), gathered, 0)
    assert rank or [o.tolist() for o in gathered] == [[1, 2], [11, 12]]
    for tensor in (x, y, z, *outputs, *(gathered or [])):
        assert tensor._base[:, 1].tolist() == [99, 99]


def test_a_column_is_not_taken_for_dense_memory(pools):
    pools.run(2, columns)


def dropped() -> list:
    outputs = [torch.zeros(262144) for _ in range(2)]
    given = torch.full((262144,), dist.get_rank() + 1.0)
    work = dist.all_gather(outputs, given, async_op=True)
    del given
    gc.collect()
    other = torch.full((262144,), 777.0)
    work.wait()
    assert other.eq(777.0).all()
    return [sorted(set(output.tolist())) for output in outputs]


def test_a_dropped_input_lives_until_its_call_is_done(pools):
    assert pools.run(2, dropped) == [[[1.0], [2.0]]] * 2


# --- tied weights -------------------------------------------------------------------


class Tied(nn.Module):
    """One parameter under two names, used with factors 1 and 2."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.tensor([10.0]))
        self.second = self.first

    def forward(self) -> torch.Tensor:
        return (self.first + 2 * self.second).sum()


def tied(kind: str, path: str) -> list[float]:
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

    model: Any = Tied()
    if kind == "ddp":
        wrapped: Any = nn.parallel.DistributedDataParallel(model)
    elif kind == "fsdp1":
        wrapped = FullyShardedDataParallel(
            model, use_orig_params=True, device_id=torch.device("cpu")
        )
    else:
        wrapped = fully_shard(model)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=1.0)
    wrapped().backward()
    optimizer.step()
    state = _whole_state(wrapped)
    other = Tied()
    if dist.get_rank() == 0:
        torch.save(state, path)
        other.load_state_dict(torch.load(path))
        assert other.first is other.second and other.first.item() == 7.0
    return [float(value) for value in state.values()]


def _whole_state(model: nn.Module) -> dict:
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=False)
    return get_model_state_dict(model, options=options)


@pytest.mark.parametrize("kind", ["ddp", "fsdp1", "fsdp2"])
def test_tied_weights_stay_one(pools, tmp_path, kind):
    first, _ = pools.run(2, tied, kind, str(tmp_path / "state"))
    assert first == [7.0, 7.0]


# --- bad input ----------------------------------------------------------------------


def refused() -> int:
    rank, size = dist.get_rank(), dist.get_world_size()
    anything = (RuntimeError, ValueError, TypeError)
    wrong = [
        lambda: dist.all_reduce(torch.ones(2, device="meta")),
        lambda: dist.all_gather([torch.ones(2)] * (size + 1), torch.ones(2)),
        lambda: dist.all_gather_into_tensor(torch.ones(2 * size + 1), torch.ones(2)),
        lambda: dist.reduce_scatter_tensor(torch.ones(3), torch.ones(2 * size)),
        lambda: dist.all_to_all_single(torch.ones(4), torch.ones(4), [1, 1], [1, 1]),
        lambda: dist.broadcast(torch.ones(2), size),
        lambda: dist.all_reduce(torch.ones(3).to_sparse()),
        lambda: dist.send(torch.ones(1), size + 3),
        lambda: dist.new_group([0, size + 1]),
    ]
    for i, call in enumerate(wrong):
        with pytest.raises(anything):
            call()
            raise AssertionError(f"call {i} went well on rank {rank}")
    return digits()


def test_bad_input_is_an_exception_and_nothing_breaks(pools):
    assert pools.run(2, refused) == [11, 11]


def silent(limit: float) -> str:
    rank = dist.get_rank()
    group = dist.new_group([0, 1], timeout=timedelta(seconds=limit))
    if rank == 1:
        time.sleep(3 * limit)
        return ""
    return sentence(dist.all_reduce, torch.ones(2), group=group)


def test_a_group_has_its_own_limit(pools):
    text, _ = pools.fresh(2, silent, 1.0)
    assert "timed out after 1 s" in text and "rank 1" in text, text
