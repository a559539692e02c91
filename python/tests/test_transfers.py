# SPDX-License-Identifier: BSD-3-Clause
"""Send and receive."""

from __future__ import annotations

from datetime import timedelta

import pytest
import torch
import torch.distributed as dist


def _tags(rank: int, size: int) -> None:
    if rank == 0:
        works = [dist.isend(torch.tensor([float(tag)]), 1, tag=tag) for tag in range(100)]
    else:
        tensors = [torch.zeros(1) for _ in range(100)]
        works = [dist.irecv(tensors[tag], 0, tag=tag) for tag in reversed(range(100))]
    for work in works:
        work.wait()
    assert rank == 0 or [t.item() for t in tensors] == list(range(100))


def test_tags_meet_in_any_order(run_ranks):
    run_ranks(_tags, 2)


def _from_anyone(rank: int, size: int) -> None:
    x = torch.zeros(2)
    if rank != 0:
        dist.send(torch.full((2,), float(rank)), 0)
        dist.send(torch.full((2,), float(rank)), 0, tag=5)
        return dist.barrier()
    for tag in (0, 5):
        found = set()
        for _ in range(size - 1):
            sender = dist.recv(x, tag=tag)
            assert x.tolist() == [sender, sender]
            found.add(sender)
        assert found == set(range(1, size))
    return dist.barrier()


def test_a_receive_takes_from_whoever_sends(run_ranks):
    run_ranks(_from_anyone, 4)


def _posted_first(rank: int, size: int) -> None:
    """Both post a receive from anyone, and then send blocking."""
    x = torch.zeros(1)
    work = dist.irecv(x)
    dist.send(torch.tensor([float(rank)]), 1 - rank)
    work.wait()
    assert x.item() == 1 - rank and work._source_rank() == 1 - rank


def test_a_receive_from_anyone_goes_on_beside_a_send(run_ranks):
    run_ranks(_posted_first, 2)


def _nobody(rank: int, size: int) -> None:
    group = dist.new_group(timeout=timedelta(milliseconds=200))
    if rank == 0:
        with pytest.raises(dist.DistBackendError, match="nobody has sent within 0.2 s"):
            dist.recv(torch.zeros(1), group=group)
    dist.barrier()


def test_a_receive_that_nobody_sends_to_times_out(run_ranks):
    run_ranks(_nobody, 2)


def _itself(rank: int, size: int) -> None:
    x, y = torch.zeros(3), torch.zeros(3)
    receive = dist.irecv(x, rank)
    sends = [dist.isend(torch.full((3,), float(i)), rank) for i in range(2)]
    dist.irecv(y, rank).wait()
    receive.wait()
    for send in sends:
        send.wait()
    assert x.tolist() == [0, 0, 0] and y.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="sends itself 2 elements"):
        dist.isend(torch.zeros(2), rank)
        dist.irecv(x, rank).wait()


def test_a_rank_may_send_to_itself(run_ranks):
    run_ranks(_itself, 2)


def _ring(rank: int, size: int) -> None:
    out = torch.full((1000, 3), float(rank)).t()
    came = torch.zeros(3, 1000)
    works = dist.batch_isend_irecv([
        dist.P2POp(dist.isend, out, (rank + 1) % size),
        dist.P2POp(dist.irecv, came, (rank - 1) % size)])
    for work in works:
        work.wait()
    assert torch.equal(came, torch.full((3, 1000), float((rank - 1) % size)))
    group = dist.group.WORLD
    with dist.distributed_c10d._coalescing_manager(device=torch.device("cpu"),
                                                   async_ops=True) as manager:
        group.recv([came], (rank - 1) % size, 0)
        group.send([came + 1 if size == 1 else out], (rank + 1) % size, 0)
    manager.wait()
    assert came[0, 0].item() == (rank - 1) % size


def test_batches_of_transfers_go_round_a_ring(run_ranks):
    run_ranks(_ring, 3)


def _left_over(rank: int, size: int) -> None:
    works = [dist.irecv(torch.zeros(1), 1 - rank), dist.irecv(torch.zeros(1))]
    dist.barrier()
    dist.destroy_process_group()
    for work, text in zip(works, ("was revoked by rank", "pending when its group|nobody is left")):
        with pytest.raises(RuntimeError, match=text):
            work.wait()


def test_receives_that_are_left_over_do_not_hold_up_the_end(run_ranks):
    run_ranks(_left_over, 2, destroys=False)


def _outside(rank: int, size: int) -> None:
    with pytest.raises(ValueError, match="rank 7 is not in the group's 0 to 1"):
        dist.group.WORLD.send([torch.zeros(1)], 7, 0)


def test_ranks_outside_are_refused(run_ranks):
    run_ranks(_outside, 2)
