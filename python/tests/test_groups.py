# SPDX-License-Identifier: BSD-3-Clause
"""Groups, lives, and what they cost."""

from __future__ import annotations

import os
import sys
import threading
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

import raddle.torch


def _equal_ranks(rank: int, size: int) -> None:
    groups = [dist.new_group([0, 1]) for _ in range(50)]
    if rank < 2:
        for group in groups:
            dist.barrier(group=group)
        account = raddle.torch.account()
        assert account["groups_opened"] == 50
        assert account["communicators"] == 2  # the world and this list
        assert account["dev_shm_peak_bytes"] == 0
        assert account["arena_total"]["staging"] > 0
    else:
        assert all(group == dist.GroupMember.NON_GROUP_MEMBER for group in groups)
    dist.barrier()


def test_groups_of_equal_ranks_share_one_communicator(run_ranks):
    run_ranks(_equal_ranks, 3)


def _some(rank: int, size: int) -> None:
    if rank != 1:  # without the others
        group = dist.new_group([2, 0], use_local_synchronization=True)
        x = torch.tensor([float(rank)])
        dist.broadcast(x, src=2, group=group)
        assert x.item() == 2 and dist.get_process_group_ranks(group) == [0, 2]
    group = dist.split_group(split_ranks=[[0, 2], [1]])
    x = torch.ones(1)
    dist.all_reduce(x, group=group)
    assert x.item() == (1 if rank == 1 else 2)
    inner = dist.split_group(group, [[1]])
    assert (inner is None) == (rank != 2)
    assert dist.get_world_size(group) == (1 if rank == 1 else 2)
    dist.destroy_process_group(group)
    with pytest.raises(ValueError):
        dist.all_reduce(x, group=group)


def test_groups_of_some_ranks_are_made_by_them_alone(run_ranks):
    run_ranks(_some, 3)


def _lives(rank: int, size: int, file: str) -> None:
    store = dist.FileStore(file, size)
    for _ in range(3):
        dist.destroy_process_group()
        dist.init_process_group("raddle", store=store, rank=rank, world_size=size)
        x = torch.ones(1)
        dist.all_reduce(x)
        assert x.item() == size
        with pytest.raises(ValueError, match="twice"):
            dist.init_process_group("raddle", store=store, rank=rank, world_size=size)


def test_a_process_may_have_many_lives_with_one_store(run_ranks, tmp_path):
    run_ranks(_lives, 2, str(tmp_path / "store"))


def _monitored(rank: int, size: int) -> None:
    dist.monitored_barrier()
    if rank == 0:
        with pytest.raises(RuntimeError, match="timed out after 0.3 s, waiting for ranks 1,2"):
            dist.monitored_barrier(timeout=timedelta(milliseconds=300))
    dist.barrier()
    if rank != 0:
        with pytest.raises(RuntimeError, match="waiting for ranks 1,2"):
            dist.monitored_barrier(timeout=timedelta(seconds=20))
    dist.monitored_barrier(timeout=timedelta(seconds=20))
    x = torch.ones(1)
    dist.all_reduce(x)
    assert x.item() == size


def test_a_monitored_barrier_names_who_is_missing_and_ends_nothing(run_ranks):
    run_ranks(_monitored, 3)


def _forked(rank: int, size: int) -> None:
    child = os.fork()
    if child == 0:
        try:
            dist.all_reduce(torch.ones(1))
        except RuntimeError as error:
            os._exit(5 if "a forked child" in str(error) else 6)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    dist.barrier()


def test_a_forked_child_is_no_rank_and_disturbs_none(run_ranks):
    run_ranks(_forked, 2)


def _limits(rank: int, size: int) -> None:
    short = dist.new_group(timeout=timedelta(milliseconds=200))
    if rank == 0:
        with pytest.raises(dist.DistBackendError, match="timed out after 0.2 s"):
            dist.barrier(group=short)
    other = dist.new_group()
    if rank == 0:
        with pytest.raises(dist.DistBackendError, match="timed out after 0.1 s"):
            dist.barrier(group=other, timeout=timedelta(milliseconds=100))
    time.sleep(0.1)
    dist.barrier()


def test_groups_and_calls_have_timeouts_of_their_own(run_ranks):
    run_ranks(_limits, 2)


def _profiled(rank: int, size: int) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        dist.all_reduce(torch.ones(1))
        dist.all_reduce(torch.ones(1), async_op=True).wait()
        dist.barrier()
    counts = {event.key: event.count for event in profile.key_averages()}
    assert counts["raddle:all_reduce"] == 2 and counts["raddle:barrier"] == 1


def test_a_profile_shows_the_calls(run_ranks):
    run_ranks(_profiled, 2)


def _with_gloo(rank: int, size: int) -> None:
    group = dist.new_group(backend="gloo")
    x = torch.ones(1)
    dist.all_reduce(x, group=group)
    dist.monitored_barrier(group)
    assert x.item() == size and dist.get_backend(group) == "gloo"


def test_a_group_of_gloo_may_stand_beside(run_ranks):
    run_ranks(_with_gloo, 2)


def _under_gloo(rank: int, size: int, file: str) -> None:
    dist.destroy_process_group()
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=size)
    group = dist.new_group([0, 1], backend="raddle")
    x = torch.ones(1)
    if rank < 2:
        dist.all_reduce(x, group=group)
        assert x.item() == 2
        assert raddle.torch.account(group)["communicators"] == 1
    dist.barrier()


def test_a_group_of_raddle_may_stand_beside_gloo(run_ranks, tmp_path):
    run_ranks(_under_gloo, 3, str(tmp_path / "store"))


def test_the_module_warns_of_untested_releases():
    import subprocess
    program = ("import torch, warnings; torch.__version__ = '2.99.0'\n"
               "warnings.simplefilter('error')\n"
               "import raddle.torch")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert "was tested with PyTorch 2.13, and this is 2.99.0" in done.stderr


def _thread_rank(rank: int, size: int, store: dist.Store, sums: list[float]) -> None:
    options = c10d._DistributedBackendOptions()
    options.store, options.group_rank, options.group_size = store, rank, size
    options.timeout, options.group_id = timedelta(seconds=20), "0"
    group = raddle.torch._create(options)
    x = torch.full((3,), float(rank))
    for _ in range(20):
        group.allreduce([torch.ones(1)]).wait()
    group.allreduce([x]).get_future().wait()
    group.shutdown()
    sums[rank] = x.sum().item()


def test_ranks_may_be_threads_of_one_process():
    store, sums = dist.HashStore(), [0.0] * 4
    threads = [threading.Thread(target=_thread_rank, args=(rank, 4, store, sums))
               for rank in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [18.0] * 4
