# SPDX-License-Identifier: BSD-3-Clause
"""Calls that go on beside the program: works and futures."""

from __future__ import annotations

import gc
import threading
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def _results(rank: int, size: int) -> None:
    x = torch.ones(4)
    work = dist.all_reduce(x, async_op=True)
    assert work.wait() and work.wait()
    assert work.is_completed() and work.is_success() and work.exception() is None
    assert work.result()[0] is x and x[0].item() == size
    work.synchronize()
    assert work.get_future().wait()[0] is x


def test_a_work_tells_its_result_as_often_as_it_is_asked(run_ranks):
    run_ranks(_results, 2)


def _many(rank: int, size: int) -> None:
    if rank == 0:
        time.sleep(0.2)  # the other issues all of them before any is done
    tensors = [torch.full((2,), float(i)) for i in range(3000)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    works[-1].wait()
    for work in works:
        work.wait()
    assert all(t[0].item() == size * i for i, t in enumerate(tensors))
    assert not dist.group.WORLD.raddle_world._pending


def test_thousands_of_works_may_be_pending(run_ranks):
    run_ranks(_many, 2)


def _late_partner(rank: int, size: int) -> None:
    x = torch.ones(1)
    go = dist.new_group()
    if rank == 1:
        dist.barrier(group=go)
    work = dist.all_reduce(x, async_op=True)
    if rank == 0:
        assert not work.is_completed()
        with pytest.raises(dist.DistBackendError, match="the work is not done after 0.05 s"):
            work.wait(timedelta(milliseconds=50))
        dist.barrier(group=go)
    assert work.wait(timedelta(seconds=20))
    assert x.item() == size


def test_a_wait_that_times_out_may_be_repeated(run_ranks):
    run_ranks(_late_partner, 2)


def _own_timeout(rank: int, size: int) -> None:
    group = dist.new_group(timeout=timedelta(milliseconds=300))
    if rank == 0:
        work = dist.all_reduce(torch.ones(1), group=group, async_op=True)
        with pytest.raises(dist.DistBackendError, match="timed out after 0.3 s"):
            work.wait(timedelta(seconds=30))
        assert "timed out" in str(work.exception()) and not work.is_success()
    dist.barrier()


def test_a_group_s_timeout_ends_its_works(run_ranks):
    run_ranks(_own_timeout, 2)


def _futures(rank: int, size: int) -> None:
    chained = [dist.all_reduce(torch.full((1,), float(i)), async_op=True).get_future()
               .then(lambda f: f.value()[0].item() + 1) for i in range(50)]
    assert [f.wait() for f in chained] == [size * i + 1 for i in range(50)]
    names = [t.name for t in threading.enumerate()]
    assert names.count("raddle watcher") == 1


def test_futures_are_completed_by_one_thread(run_ranks):
    run_ranks(_futures, 2)


def _dropped(rank: int, size: int) -> None:
    go = dist.new_group()
    if rank == 1:
        dist.barrier(group=go)
    for _ in range(10):
        dist.all_reduce(torch.ones(100_000), async_op=True)
    gc.collect()
    world = dist.group.WORLD.raddle_world
    if rank == 0:  # nothing has begun, and every buffer is still there
        assert len(world._pending) == 10
        dist.barrier(group=go)
    dist.barrier()
    for _ in range(20):
        dist.barrier(group=go)
    assert len(world._pending) == 0


def test_buffers_of_dropped_works_live_until_they_are_done(run_ranks):
    run_ranks(_dropped, 2)


def _ddp(rank: int, size: int) -> list[float]:
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(8, 4))
    data = torch.randn(8, 8)
    for _ in range(3):
        model.zero_grad()
        model(data[4 * rank:4 * rank + 4]).sum().backward()
    return model.module.weight.grad.sum().item()


def test_ddp_gradients_are_those_of_one_process(run_ranks):
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 4)
    model(torch.randn(8, 8)).sum().backward()
    wanted = model.weight.grad.sum().item() / 2
    assert run_ranks(_ddp, 2) == pytest.approx([wanted, wanted], rel=1e-5)


def _two_threads(rank: int, size: int) -> None:
    group = dist.new_group()
    found = []

    def beside() -> None:
        for i in range(200):
            x = torch.tensor([float(i)])
            dist.all_reduce(x, group=group)
            found.append(x.item())

    thread = threading.Thread(target=beside)
    thread.start()
    for i in range(200):
        x = torch.tensor([float(-i)])
        dist.all_reduce(x)
        assert x.item() == -size * i
    thread.join()
    assert found == [float(size * i) for i in range(200)]


def test_a_second_group_over_the_same_ranks_never_pairs_with_the_first(run_ranks):
    run_ranks(_two_threads, 2)
