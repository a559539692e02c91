# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong reaches the program as an exception with the numbers."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

HERE = os.path.basename(__file__)


def _mismatch(rank: int, size: int) -> str:
    with pytest.raises(dist.DistBackendError) as caught:
        if rank == 0:
            dist.all_reduce(torch.zeros(3))
        else:
            dist.broadcast(torch.zeros(4), src=1)
    return str(caught.value)


def test_a_mismatch_names_the_lines_of_both_sides(run_ranks):
    first, second = run_ranks(_mismatch, 2)
    assert first == second
    lines = _mismatch.__code__.co_firstlineno
    assert f"all_reduce(3 float32, sum) at {_site(lines + 3)}" in first
    assert f"broadcast(4 float32, root 1) at {_site(lines + 5)}" in first


def _site(line: int) -> str:
    return f"{os.path.relpath(__file__)}:{line}"


def _beside(rank: int, size: int) -> None:
    work = dist.all_reduce(torch.zeros(3 + rank), async_op=True)
    with pytest.raises(dist.DistBackendError, match="mismatch in call #1"):
        work.wait()
    assert isinstance(work.exception(), dist.DistBackendError)
    with pytest.raises(RuntimeError, match="DistBackendError: mismatch in call #1"):
        work.get_future().wait()


def test_a_mismatch_is_the_result_of_a_work_and_of_its_future(run_ranks):
    run_ranks(_beside, 2)


def _death(rank: int, size: int) -> float:
    dist.barrier()
    if rank == 1:
        os._exit(7)
    start = time.monotonic()
    with pytest.raises(dist.DistBackendError, match="rank 1 is gone"):
        dist.all_reduce(torch.zeros(1))
    return time.monotonic() - start


def test_a_dead_rank_ends_every_wait(run_ranks):
    took = run_ranks(_death, 3, dies=(1,))
    assert took[0] < 5 and took[2] < 5


def _death_in_ddp(rank: int, size: int) -> None:
    model = DistributedDataParallel(torch.nn.Linear(2, 2), broadcast_buffers=False)
    loss = model(torch.ones(1, 2)).sum()
    dist.barrier()
    if rank == 1:
        os._exit(7)
    with pytest.raises(RuntimeError, match="rank 1 is gone"):
        loss.backward()


def test_a_dead_rank_ends_a_backward_pass_of_ddp(run_ranks):
    run_ranks(_death_in_ddp, 2, dies=(1,))


def _bad_input(rank: int, size: int) -> None:
    op = dist.ReduceOp
    x = torch.zeros(2)
    for kind, text, call in (
            (RuntimeError, "a tensor is on meta, and this build",
             lambda: dist.all_reduce(torch.zeros(2, device="meta"))),
            (RuntimeError, "layout is torch.sparse_coo",
             lambda: dist.all_reduce(torch.eye(2).to_sparse())),
            (RuntimeError, "float8_e5m2 can be moved, and not reduced",
             lambda: dist.all_reduce(x.to(torch.float8_e5m2))),
            (RuntimeError, "the output has 3 elements; 2 ranks with 2 each make 4",
             lambda: dist.all_gather_single(torch.zeros(3), x)),
            (RuntimeError, "2 ranks that get 2 each need 4",
             lambda: dist.reduce_scatter_single(x, torch.zeros(5))),
            (RuntimeError, "output 0, which it goes to, has 3|output 1, which it goes to, has 3",
             lambda: dist.all_gather([torch.zeros(3), torch.zeros(3)], x)),
            (RuntimeError, "the list has 1 tensors, and the group 2 ranks",
             lambda: dist.all_gather([x], x)),
            (RuntimeError, r"the split sizes \[1, 2\] of the input do not add up to its 2 rows",
             lambda: dist.all_to_all_single(torch.zeros(3), x, [1, 2], [1, 2])),
            (RuntimeError, "there is no bit_and of float32", lambda: dist.all_reduce(x, op.BAND)),
            (RuntimeError, "there is no avg of bool",
             lambda: dist.all_reduce(x.bool(), op.AVG)),
            (ValueError, "complex", lambda: dist.all_reduce(x.to(torch.complex64), op.MAX)),
            (RuntimeError, "resolve_conj",
             lambda: dist.broadcast(x.to(torch.complex64).conj(), src=0)),
            (RuntimeError, "one tensor is wanted, and the list has 2",
             lambda: dist.group.WORLD.allreduce([x, x])),
            (RuntimeError, "tensors of torch.float32 and torch.int64",
             lambda: dist.group.WORLD.all_gather_single(torch.zeros(4).long(), x)),
            (RuntimeError, r"root 9 is outside the group ranks 0..1",
             lambda: dist.group.WORLD.broadcast(x, 9))):
        with pytest.raises(kind, match=text):
            call()
    dist.barrier()  # nothing was sent
    parameter = torch.nn.Parameter(torch.ones(2))
    dist.all_reduce(parameter)
    assert parameter.tolist() == [2, 2] and parameter.requires_grad


def test_bad_input_is_refused_before_anything_is_sent(run_ranks):
    run_ranks(_bad_input, 2)


def _inside(rank: int, size: int) -> None:
    """A thread is inside a call when its process ends, or waits for a work."""
    group = dist.new_group()
    if rank == 1:
        threading.Thread(target=dist.barrier, args=(group,), daemon=True).start()
        time.sleep(0.3)
        dist.group.WORLD.raddle_world.leave()
        os._exit(0)
    with pytest.raises(dist.DistBackendError, match="rank 1 closed its world|is gone"):
        dist.barrier()


def test_a_process_may_end_while_a_thread_is_inside_a_call(run_ranks):
    run_ranks(_inside, 2, dies=(1,))


def _leaves(rank: int, size: int) -> None:
    dist.barrier()
    if rank == 1:
        sys.last_value = ValueError("out of cheese")
        dist.group.WORLD.raddle_world.leave()
        return
    with pytest.raises(dist.DistBackendError, match="rank 1 gave up: ValueError: out of cheese"):
        dist.barrier()


def test_what_a_rank_ends_with_is_told_to_the_others(run_ranks):
    run_ranks(_leaves, 2, destroys=False)
