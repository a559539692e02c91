# SPDX-License-Identifier: BSD-3-Clause
"""Training on raddle and on gloo: the same losses and weights.

Two ranks add in one order only, so there the bits are equal. With more, gloo's
order of additions is its own, and results agree within 1e-6.
"""

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
import torch
import torch.distributed as dist
from models import (
    WIDTH, Attention, Block, Gathered, Stack, batch, descend, stack, train, weights, whole,
)
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    CPUOffload, FullyShardedDataParallel, MixedPrecision, ShardingStrategy, StateDictType,
    fully_shard,
)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel, RowwiseParallel, parallelize_module,
)

LONG = pytest.mark.soak

RANKS = pytest.mark.parametrize("size", [2, pytest.param(4, marks=LONG)])

TOLERANCE = 1e-6


def agree(pools: Any, size: int, body: Any, *args: Any) -> list:
    """Runs body on both backends; what it returns has to agree. Raddle's results."""
    ours, theirs = pools.both(size, body, *args)
    for rank in range(size):
        _close(ours[rank], theirs[rank], exact=size == 2, where=f"rank {rank}")
    return ours


def _close(ours: Any, theirs: Any, exact: bool, where: str) -> None:
    assert type(ours) is type(theirs), where
    if isinstance(ours, dict):
        assert list(ours) == list(theirs), where
        for name in ours:
            _close(ours[name], theirs[name], exact, f"{where}, {name}")
    elif isinstance(ours, (list, tuple)):
        assert len(ours) == len(theirs), where
        for i, pair in enumerate(zip(ours, theirs)):
            _close(*pair, exact, f"{where}, {i}")
    elif isinstance(ours, torch.Tensor):
        limits = {"rtol": 0, "atol": 0} if exact else {"rtol": TOLERANCE, "atol": TOLERANCE}
        torch.testing.assert_close(ours, theirs, **limits, msg=lambda text: f"{where}: {text}")
    elif isinstance(ours, float):
        assert ours == pytest.approx(theirs, abs=0 if exact else TOLERANCE, rel=0), where
    else:
        assert ours == theirs, where


def _sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def _reference(size: int, hidden: int = 17) -> tuple[list[float], dict]:
    """One process which has every rank's rows: the losses of rank 0, and the weights."""
    model = stack(hidden)
    optimizer = _sgd(model)
    losses = []
    for step in range(4):
        optimizer.zero_grad()
        parts = [model(batch(step, rank)).square().mean() for rank in range(size)]
        (sum(parts) / size).backward()
        optimizer.step()
        losses.append(parts[0].item())
    return losses, weights(model)


def _like_one_process(results: list, size: int, hidden: int = 17) -> None:
    losses, wanted = _reference(size, hidden)
    assert results[0][0] == pytest.approx(losses, abs=1e-5)
    for name, tensor in wanted.items():
        torch.testing.assert_close(results[0][1][name], tensor, rtol=1e-5, atol=1e-5)


# --- replicas -------------------------------------------------------------------


def ddp(bucket_mb: float, static: bool) -> tuple:
    model = nn.parallel.DistributedDataParallel(
        stack(), bucket_cap_mb=bucket_mb, static_graph=static
    )
    losses = train(model, _sgd(model))
    return losses, weights(model.module)


@RANKS
@pytest.mark.parametrize("bucket_mb, static", [(25, False), (0.0005, False), (25, True)])
def test_ddp_trains_as_one_process_does(pools, size, bucket_mb, static):
    _like_one_process(agree(pools, size, ddp, bucket_mb, static), size)


def ddp_uneven() -> tuple:
    """Rank r has r + 1 batches; who has run out joins in with zeros."""
    model = nn.parallel.DistributedDataParallel(stack())
    optimizer = _sgd(model)
    with model.join():
        losses = train(model, optimizer, range(dist.get_rank() + 1))
    return losses, weights(model.module)


@RANKS
def test_ddp_joins_ranks_that_run_out_of_input(pools, size):
    results = agree(pools, size, ddp_uneven)
    assert [len(losses) for losses, _ in results] == list(range(1, size + 1))


def ddp_hook(name: str) -> tuple:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    model = nn.parallel.DistributedDataParallel(stack())
    model.register_comm_hook(None, getattr(default_hooks, name))
    return train(model, _sgd(model)), weights(model.module)


@pytest.mark.parametrize("name", ["allreduce_hook", "fp16_compress_hook"])
def test_ddp_hooks_reduce_as_gloos_do(pools, name):
    agree(pools, 2, ddp_hook, name)


# --- FSDP, the first ------------------------------------------------------------


@contextmanager
def _no_gpu_is_missed() -> Iterator[None]:
    """Offloading pins memory and waits for a stream, which the host's has no call for."""
    pin = mock.patch.object(torch.Tensor, "pin_memory", lambda self: self)
    wait = mock.patch.object(torch.cpu.Stream, "synchronize", lambda self: None, create=True)
    with pin, wait:
        yield


def fsdp1(strategy: str, offload: bool, wrapped: bool, original: bool) -> tuple:
    kind = ShardingStrategy[strategy]
    more: dict = {}
    if kind in (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2):
        half = dist.get_world_size() // 2
        more["device_mesh"] = init_device_mesh("cpu", (2, half))
    with warnings.catch_warnings(), _no_gpu_is_missed():
        warnings.simplefilter("ignore")
        model = FullyShardedDataParallel(
            stack(), sharding_strategy=kind, cpu_offload=CPUOffload(offload),
            auto_wrap_policy=ModuleWrapPolicy({Block}) if wrapped else None,
            use_orig_params=original, device_id=torch.device("cpu"), **more,
        )
        losses = train(model, _sgd(model))
        with FullyShardedDataParallel.summon_full_params(model):
            full = {n: p.detach().clone() for n, p in model.named_parameters()}
    return losses, {n.replace("_fsdp_wrapped_module.", ""): p for n, p in full.items()}


STRATEGIES = ["FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD"]


@pytest.mark.parametrize("offload", [False, True], ids=["", "offload"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fsdp1_trains_as_one_process_does(pools, strategy, offload):
    results = agree(pools, 2, fsdp1, strategy, offload, True, not offload)
    _like_one_process(results, 2)


@pytest.mark.parametrize("strategy", [
    *(pytest.param(s, marks=LONG) for s in (*STRATEGIES, "_HYBRID_SHARD_ZERO2")), "HYBRID_SHARD",
])
def test_fsdp1_shards_over_four_ranks_and_over_pairs(pools, strategy):
    results = agree(pools, 4, fsdp1, strategy, False, True, True)
    _like_one_process(results, 4)


def test_fsdp1_with_one_flat_parameter_agrees(pools):
    agree(pools, 4, fsdp1, "FULL_SHARD", False, False, False)


def fsdp1_states(kind: str) -> tuple:
    """Trains, saves, changes all weights, loads, trains on."""
    model = FullyShardedDataParallel(
        stack(), auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=torch.device("cpu")
    )
    optimizer = _sgd(model)
    before = train(model, optimizer, range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with FullyShardedDataParallel.state_dict_type(model, StateDictType[kind]):
            saved = copy.deepcopy(model.state_dict())
            for parameter in model.parameters():
                nn.init.zeros_(parameter)
            model.load_state_dict(saved)
    return before, train(model, optimizer, range(2, 4))


@pytest.mark.parametrize(
    "kind", ["FULL_STATE_DICT", "SHARDED_STATE_DICT", "LOCAL_STATE_DICT"]
)
def test_fsdp1_goes_on_from_a_state_dict(pools, kind):
    results = agree(pools, 2, fsdp1_states, kind)
    losses, _ = _reference(2)
    assert results[0][0] + results[0][1] == pytest.approx(losses, abs=1e-5)


# --- FSDP, the second -------------------------------------------------------------


def _sharded(mesh: Any = None, **more: Any) -> Stack:
    model = stack()
    for block in model.blocks:
        fully_shard(block, mesh=mesh, **more)
    fully_shard(model, mesh=mesh, **more)
    return model


def fsdp2(shape: tuple, reshard: Any, accumulate: bool) -> tuple:
    names = ("replicate", "shard")[-len(shape):]
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    model = _sharded(mesh, reshard_after_forward=reshard)
    optimizer = _sgd(model)
    losses = _accumulated(model, optimizer) if accumulate else train(model, optimizer)
    return losses, weights(model)


def _accumulated(model: Any, optimizer: torch.optim.Optimizer) -> list[float]:
    """Two batches a step, whose gradients are reduced with the second."""
    losses = []
    for step in range(3):
        optimizer.zero_grad()
        for part in range(2):
            model.set_requires_gradient_sync(part == 1)
            loss = model(batch(2 * step + part, dist.get_rank())).square().mean()
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
    return losses


@pytest.mark.parametrize("reshard", [True, pytest.param(False, marks=LONG)])
@pytest.mark.parametrize("shape", [(2,), pytest.param((4,), marks=LONG), (2, 2)], ids=str)
def test_fsdp2_trains_as_one_process_does(pools, shape, reshard):
    size = shape[0] * shape[-1] if len(shape) == 2 else shape[0]
    _like_one_process(agree(pools, size, fsdp2, shape, reshard, False), size)


@pytest.mark.parametrize("shape", [(4,), pytest.param((2, 2), marks=LONG)], ids=str)
def test_fsdp2_accumulates_gradients(pools, shape):
    agree(pools, 4, fsdp2, shape, True, True)


def fsdp2_clipped() -> tuple:
    model = _sharded()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
    norms = []
    for step in range(3):
        optimizer.zero_grad()
        model(batch(step, dist.get_rank())).square().mean().backward()
        norms.append(whole(nn.utils.clip_grad_norm_(model.parameters(), 0.5)))
        optimizer.step()
    return norms, weights(model)


@RANKS
def test_fsdp2_clips_by_the_norm_of_all_shards(pools, size):
    results = agree(pools, size, fsdp2_clipped)
    assert all(torch.equal(norm, results[0][0][i]) for r in results for i, norm in enumerate(r[0]))


def fsdp2_mixed() -> tuple:
    from torch.distributed.fsdp import MixedPrecisionPolicy

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = _sharded(mp_policy=policy)
    return train(model, _sgd(model)), weights(model)


def test_fsdp2_in_bfloat16_reduces_in_float32(pools):
    agree(pools, 2, fsdp2_mixed)


def fsdp1_mixed() -> tuple:
    policy = MixedPrecision(torch.bfloat16, torch.float32, torch.bfloat16)
    model = FullyShardedDataParallel(
        stack(), mixed_precision=policy, auto_wrap_policy=ModuleWrapPolicy({Block}),
        device_id=torch.device("cpu"),
    )
    return train(model, _sgd(model))


def test_fsdp1_in_bfloat16_reduces_in_float32(pools):
    agree(pools, 2, fsdp1_mixed)


# --- tensor parallelism -----------------------------------------------------------


def _split_blocks(model: Stack, mesh: Any) -> Stack:
    for block in model.blocks:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return model


def tensor_parallel() -> tuple:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = _split_blocks(stack(16), mesh)
    return train(model, _sgd(model), rank=0), weights(model)


@RANKS
def test_tensor_parallel_trains_as_one_process_does(pools, size):
    results = agree(pools, size, tensor_parallel)
    _like_one_process(results, 1, 16)


def two_axes(shape: tuple) -> tuple:
    """FSDP2 over one axis, tensor parallelism over the other."""
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp"))
    model = _split_blocks(stack(16), mesh["tp"])
    for block in model.blocks:
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    losses = train(model, _sgd(model), rank=mesh["dp"].get_local_rank())
    return losses, weights(model)


@pytest.mark.parametrize(
    "shape", [(2, 2), *(pytest.param(s, marks=LONG) for s in ((4, 1), (1, 4)))], ids=str
)
def test_fsdp2_and_tensor_parallel_share_a_mesh(pools, shape):
    _like_one_process(agree(pools, 4, two_axes, shape), shape[0], 16)


# --- context parallelism ------------------------------------------------------------


def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, first: int) -> torch.Tensor:
    """Causal; q's rows begin at first of the sequence, [length, heads, width]."""
    rows = torch.arange(first, first + len(q))[:, None] >= torch.arange(len(k))[None]
    heads = [t.transpose(0, 1) for t in (q, k, v)]
    return nn.functional.scaled_dot_product_attention(*heads, attn_mask=rows).transpose(0, 1)


def context_parallel() -> tuple:
    """Each rank has its rows of the queries, and gathers keys and values."""
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(5)
    plain = [torch.randn(6 * size, 2, 4).requires_grad_() for _ in range(3)]
    wanted = _attend(*plain, first=0)
    wanted.square().sum().backward()
    local = [t.detach().chunk(size)[rank].clone().requires_grad_() for t in plain]
    q, k, v = local
    found = _attend(q, Gathered.apply(k), Gathered.apply(v), first=6 * rank)
    found.square().sum().backward()
    torch.testing.assert_close(found, wanted.chunk(size)[rank], rtol=1e-5, atol=1e-5)
    for one, all_of_it in zip(local, plain):
        wanted_grad = all_of_it.grad.chunk(size)[rank]
        torch.testing.assert_close(one.grad, wanted_grad, rtol=1e-5, atol=1e-5)
    return found.detach(), *(t.grad for t in local)


@RANKS
def test_context_parallel_attends_as_one_process_does(pools, size):
    agree(pools, size, context_parallel)


# --- a mixture of experts -----------------------------------------------------------


class Mixture(nn.Module):
    """One expert a rank; every row goes to the expert that its number says."""

    def __init__(self, group: dist.ProcessGroup, expert: nn.Module) -> None:
        super().__init__()
        self.shared = nn.Linear(WIDTH, WIDTH)
        self.expert = expert
        self._group = group

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        from torch.distributed.nn.functional import all_to_all_single

        x = self.shared(x)
        size = dist.get_world_size(self._group)
        sent = [len(part) for part in torch.arange(len(x)).tensor_split(size)]
        counts = torch.tensor(sent)
        taken = torch.empty_like(counts)
        dist.all_to_all_single(taken, counts, group=self._group)
        came = x.new_empty(int(taken.sum()), WIDTH)
        came = all_to_all_single(came, x, taken.tolist(), sent, group=self._group)
        back = all_to_all_single(torch.empty_like(x), self.expert(came), sent, taken.tolist(),
                                 group=self._group)
        return x + back


def mixture() -> tuple:
    """The shared part is FSDP's; the expert is on a group of its rank alone."""
    rank, size = dist.get_rank(), dist.get_world_size()
    alone = [dist.new_group([r]) for r in range(size)][rank]
    torch.manual_seed(42)
    model = Mixture(dist.group.WORLD, nn.Linear(WIDTH, WIDTH))
    torch.manual_seed(42 + rank)
    model.expert.reset_parameters()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more = {"device_id": torch.device("cpu"), "use_orig_params": True}
        model.expert = FullyShardedDataParallel(model.expert, process_group=alone, **more)
        model = FullyShardedDataParallel(model, **more)
    inputs = (batch(step, rank, rows=5 + rank) for step in range(4))
    losses = descend(model, _sgd(model), inputs)
    with FullyShardedDataParallel.summon_full_params(model):
        full = [p.detach().clone() for p in model.parameters()]
    return losses, full


@RANKS
def test_experts_of_their_own_groups_train_as_on_gloo(pools, size):
    results = agree(pools, size, mixture)
    experts = [full[-1] for _, full in results]
    assert not any(torch.equal(experts[0], other) for other in experts[1:])


# --- sharded tensors ------------------------------------------------------------------


def redistribute(shape: tuple) -> int:
    """Every placement to every other, of a tensor which divides nowhere."""
    mesh = init_device_mesh("cpu", shape)
    one = (Replicate(), Shard(0), Shard(1))
    placements = [(p,) for p in one] if len(shape) == 1 else [(p, q) for p in one for q in one]
    torch.manual_seed(3)
    tensor = torch.randn(7, 5)
    for source in placements:
        for target in placements:
            moved = distribute_tensor(tensor, mesh, source).redistribute(mesh, target)
            assert torch.equal(moved.full_tensor(), tensor), (source, target)
    return len(placements)


@pytest.mark.parametrize("shape, count", [((2,), 3), ((3,), 3), ((4,), 3), ((2, 2), 9)], ids=str)
def test_sharded_tensors_go_from_any_placement_to_any_other(pools, shape, count):
    size = torch.tensor(shape).prod().item()
    assert pools.run(size, redistribute, shape) == [count] * size


def partial() -> tuple:
    from torch.distributed.tensor import Partial

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    local = torch.arange(21.0).view(7, 3) * (dist.get_rank() + 1)
    results = []
    for kind in ("sum", "avg", "max"):
        tensor = DTensor.from_local(local, mesh, [Partial(kind)])
        results += [whole(tensor.redistribute(mesh, [p])) for p in (Replicate(), Shard(0))]
    return tuple(results)


@RANKS
def test_partial_tensors_are_reduced_as_on_gloo(pools, size):
    results = agree(pools, size, partial)
    total = size * (size + 1) / 2
    torch.testing.assert_close(results[0][0], torch.arange(21.0).view(7, 3) * total)


# --- checkpoints ------------------------------------------------------------------------


def checkpoint(folder: str, first: str, then: str) -> tuple:
    """Saves from one layout, loads into another, and trains both on."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    def built(layout: str) -> tuple:
        model = _sharded() if layout == "shard" else nn.parallel.DistributedDataParallel(stack())
        return model, torch.optim.Adam(model.parameters(), lr=0.01, foreach=False)

    model, optimizer = built(first)
    train(model, optimizer, range(2))
    states = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save(states, checkpoint_id=folder)
        other, its = built(then)
        train(other, its, range(1))
        loaded = dict(zip(("model", "optimizer"), get_state_dict(other, its)))
        dcp.load(loaded, checkpoint_id=folder)
        set_state_dict(other, its, model_state_dict=loaded["model"],
                       optim_state_dict=loaded["optimizer"])
    return train(model, optimizer, range(2, 4)), train(other, its, range(2, 4))


@pytest.mark.parametrize("first, then", [("shard", "shard"), ("shard", "copy"), ("copy", "shard")])
def test_a_checkpoint_is_loaded_into_another_layout(pools, tmp_path, first, then):
    for backend in ("raddle", "gloo"):
        folder = str(tmp_path / backend)
        for on, again in pools.get(2, backend).run(checkpoint, folder, first, then):
            assert again == pytest.approx(on, abs=1e-6)


def attention() -> tuple:
    torch.manual_seed(42)
    model = nn.parallel.DistributedDataParallel(Attention())
    generator = torch.Generator().manual_seed(dist.get_rank())
    inputs = [torch.randn(2, 9, 8, generator=generator) for _ in range(3)]
    return descend(model, _sgd(model), inputs), weights(model.module)


def test_attention_in_ddp_agrees(pools):
    agree(pools, 4, attention)

