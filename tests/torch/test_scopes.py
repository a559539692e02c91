# SPDX-License-Identifier: BSD-3-Clause
"""Five scopes whose published forms fill /dev/shm, on 8 ranks in one of 64 MiB.

FSDP's mixture of experts, hybrid sharding with its groups, tensor parallelism with
FSDP, state dicts of hybrid shards, and FSDP2 in several dimensions: each makes groups
by the dozen, in the same 8 processes, and none is destroyed between. No byte of
/dev/shm is used, and groups over the same ranks share a communicator.
"""

import copy
import itertools
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
import torch
import torch.distributed as dist
from models import whole
from pool import Pool
from small_shm import BYTES, small_shm, used
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import (
    BackwardPrefetch, FullyShardedDataParallel, ShardingStrategy, StateDictType, fully_shard,
)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel, RowwiseParallel, parallelize_module,
)

import raddle.torch

LONG = pytest.mark.soak

RANKS = 8

SCATTERS = "reduce_scatter_single" if hasattr(dist, "reduce_scatter_single") else (
    "reduce_scatter_tensor"
)

CPU = torch.device("cpu")


class Eight:
    """The ranks, and the table of what each scope has opened."""

    def __init__(self) -> None:
        self.table: list[tuple[str, int, int]] = []
        self._begin()

    def _begin(self) -> None:
        with small_shm() as self._small:
            self._pool = Pool(RANKS)

    def close(self) -> None:
        self._pool.close()

    def run(self, scope: str, body: Any, *args: Any) -> list:
        """What body returns on each rank. It leaves /dev/shm as it was, which is empty
        where it is one of our own."""
        if not self._pool.usable:
            self._begin()
        before = self._pool.run(account)[0]
        results = self._pool.run(body, *args, seconds=100)
        after = self._pool.run(account)[0]
        assert after["shm"] == before["shm"] and after["dev_shm_peak_bytes"] == 0
        assert not self._small or (after["shm"], after["shm_size"]) == (0, BYTES)
        groups = after["groups_opened"] - before["groups_opened"]
        self.table.append((scope, groups, after["communicators"]))
        return results


def account() -> dict:
    import os

    place = os.statvfs("/dev/shm")
    size = place.f_blocks * place.f_frsize
    return raddle.torch.account() | {"shm": used(), "shm_size": size}


@pytest.fixture(scope="module")
def eight() -> Iterator[Eight]:
    eight = Eight()
    yield eight
    eight.close()


def _average(model: nn.Module, group: Any = None, names: Any = None) -> None:
    """Gradients of parameters of those names become their mean over a group."""
    for name, parameter in model.named_parameters():
        if names is None or names(name):
            dist.all_reduce(parameter.grad, dist.ReduceOp.AVG, group=group)


def _step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    loss = model(x).sum()
    loss.backward()
    return loss.detach()


# --- FSDP's mixture of experts ------------------------------------------------------


def _experts(rank: int) -> nn.Sequential:
    """8, 12, 23, 12, 8 wide; the third layer is the rank's own expert."""
    torch.manual_seed(42)
    layers = [nn.Linear(8, 12), nn.Linear(12, 23), nn.Linear(23, 12), nn.Linear(12, 8)]
    torch.manual_seed(42 + rank)
    layers[2].reset_parameters()
    return nn.Sequential(*layers)


def mixture(strategy: str, prefetch: str | None, original: bool) -> int:
    rank, size = dist.get_rank(), dist.get_world_size()
    alone = [dist.new_group([r]) for r in range(size)][rank]
    plain = _experts(rank)
    more: dict = {
        "sharding_strategy": ShardingStrategy[strategy], "device_id": CPU,
        "backward_prefetch": BackwardPrefetch[prefetch] if prefetch else None,
        "use_orig_params": original,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = copy.deepcopy(plain)
        model[1] = FullyShardedDataParallel(model[1], **more)
        model[2] = FullyShardedDataParallel(model[2], process_group=alone, **more)
        model = FullyShardedDataParallel(model, **more)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.01, momentum=0.9) for m in (plain, model)]
    for step in range(2):
        torch.manual_seed(step * size + rank)
        x = torch.randn(4, 8)
        for optimizer in optimizers:
            optimizer.zero_grad()
        losses = [_step(m, x) for m in (plain, model)]
        torch.testing.assert_close(losses[0], losses[1])
        # An expert's gradients stay as they are; all others are averaged.
        _average(plain, names=lambda name: not name.startswith("2."))
        for optimizer in optimizers:
            optimizer.step()
    with FullyShardedDataParallel.summon_full_params(model):
        if original:
            for ours, wanted in zip(model.parameters(), plain.parameters(), strict=True):
                torch.testing.assert_close(ours, wanted)
        total = sum(p.double().sum() for p in model.parameters())
    torch.testing.assert_close(total, sum(p.double().sum() for p in plain.parameters()))
    return len(list(model.parameters()))


MIXTURES = [
    pytest.param(s, p, o, marks=[] if o and p is None and s != "SHARD_GRAD_OP" else LONG)
    for s, p, o in itertools.product(
        ["FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD"],
        [None, "BACKWARD_PRE", "BACKWARD_POST"], [True, False],
    )
]


@pytest.mark.parametrize("strategy, prefetch, original", MIXTURES)
def test_a_mixture_of_experts_keeps_each_experts_gradient(eight, strategy, prefetch, original):
    eight.run("FSDP mixture of experts", mixture, strategy, prefetch, original)


# --- hybrid sharding and its groups ---------------------------------------------------


class Two(nn.Module):
    """Two levels: an inner pair of layers, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.inner:
            x = torch.relu(layer(x))
        return self.head(x)


def _two() -> Two:
    torch.manual_seed(42)
    return Two()


def _hybrid(strategy: str, how: str) -> Any:
    more: dict = {}
    size = dist.get_world_size()
    if how == "mesh":
        more["device_mesh"] = init_device_mesh("cpu", (2, size // 2))
    elif how == "groups":
        mesh = init_device_mesh("cpu", (2, size // 2))
        more["process_group"] = (mesh.get_group(1), mesh.get_group(0))
    return FullyShardedDataParallel(
        _two(), sharding_strategy=ShardingStrategy[strategy],
        auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), use_orig_params=True, device_id=CPU,
        **more,
    )


def hybrid(strategy: str, how: str) -> dict:
    rank, size = dist.get_rank(), dist.get_world_size()
    # FSDP takes so many ranks for one node as that has devices.
    node = mock.patch.object(torch.cpu, "device_count", lambda: size // 2)
    with warnings.catch_warnings(), node:
        warnings.simplefilter("ignore")
        model = _hybrid(strategy, how)
    modules = FullyShardedDataParallel.fsdp_modules(model)
    pairs = {(m.process_group.group_name, m._inter_node_pg.group_name) for m in modules}
    plain = _two()
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.01) for m in (plain, model)]
    count: Counter = Counter()
    for step in range(3):
        torch.manual_seed(step * size + rank)
        x = torch.randn(4, 8)
        for optimizer in optimizers:
            optimizer.zero_grad()
        wanted = _step(plain, x)
        _average(plain)
        with _counted(count):
            found = _step(model, x)
        torch.testing.assert_close(found, wanted)
        for optimizer in optimizers:
            optimizer.step()
    return {"pairs": len(pairs), "modules": len(modules), **count}


def _counted(count: Counter) -> Any:
    """Counts the calls of what hybrid sharding reduces with."""

    def counting(name: str) -> Any:
        original = getattr(dist, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            count[name] += 1
            return original(*args, **kwargs)

        return call

    names = ("all_reduce", SCATTERS)
    return mock.patch.multiple(dist, **{name: counting(name) for name in names})


@pytest.mark.parametrize(
    "strategy", ["HYBRID_SHARD", pytest.param("_HYBRID_SHARD_ZERO2", marks=LONG)]
)
@pytest.mark.parametrize("how", ["mesh", pytest.param("groups", marks=LONG), "automatic"])
def test_hybrid_shards_share_one_pair_of_groups(eight, strategy, how):
    for found in eight.run("hybrid sharding", hybrid, strategy, how):
        assert found["pairs"] == 1 and found["modules"] == 4
        # Of each module with parameters of its own, in each of 3 steps: one of each.
        assert found["all_reduce"] == found[SCATTERS] == 9


def hybrid_refusals() -> None:
    kind = ShardingStrategy.HYBRID_SHARD
    with pytest.raises(ValueError, match="explicit specification of process group or device_mesh"):
        FullyShardedDataParallel(nn.Linear(3, 3), sharding_strategy=kind, device_id=CPU)
    with pytest.raises(ValueError, match="Expected process_group to be passed in"):
        FullyShardedDataParallel(
            nn.Linear(3, 3), sharding_strategy=kind, process_group=dist.group.WORLD, device_id=CPU
        )


def test_hybrid_sharding_without_groups_is_refused(eight):
    eight.run("hybrid sharding", hybrid_refusals)


# --- tensor parallelism and FSDP --------------------------------------------------------


class Simple(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net1 = nn.Linear(5, 8)
        self.net2 = nn.Linear(8, 4)
        self.net3 = nn.Linear(4, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net3(self.net2(torch.relu(self.net1(x))))


def tensor_and_fsdp(strategy: str, original: bool) -> dict:
    rank, size = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(0)
    plain = Simple()
    model = copy.deepcopy(plain)
    parallelize_module(model, mesh["tp"], {
        "net1": ColwiseParallel(input_layouts=Shard(0)),
        "net2": RowwiseParallel(output_layouts=Shard(0)),
    })
    model = FullyShardedDataParallel(
        model, device_mesh=mesh["dp"], use_orig_params=original, device_id=CPU,
        sharding_strategy=ShardingStrategy[strategy],
    )
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.05) for m in (plain, model)]
    torch.manual_seed(rank + 1)
    x = torch.randn(2, 3, 5)
    from torch.distributed.tensor.debug import CommDebugMode

    with CommDebugMode() as count:
        outputs = [m(x) for m in (model, plain)]
        torch.testing.assert_close(*outputs)
        for output in outputs:
            output.sum().backward()
    _average(plain)
    # Gradients of the layers that are split are sums over both ranks of "tp" already.
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            if "net3" in name:
                dist.all_reduce(parameter.grad, group=mesh.get_group("tp"))
            parameter.grad.div_(2)
    if original:
        for optimizer in optimizers:
            optimizer.step()
        torch.testing.assert_close(model(x), plain(x))
    return {str(name): n for name, n in count.get_comm_counts().items()}


@pytest.mark.parametrize("strategy", ["FULL_SHARD", pytest.param("SHARD_GRAD_OP", marks=LONG)])
def test_tensor_parallel_layers_train_inside_fsdp(eight, strategy):
    counts = eight.run("TP and FSDP", tensor_and_fsdp, strategy, True)
    assert all(count == counts[0] for count in counts)


# --- state dicts of hybrid shards ---------------------------------------------------------


def _dense() -> nn.Sequential:
    torch.manual_seed(42)
    widths = (8, 16, 32, 64, 8)
    layers = [nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in zip(widths, widths[1:])]
    return nn.Sequential(*layers)


def hybrid_states(nested: bool) -> int:
    mesh = init_device_mesh("cpu", (2, dist.get_world_size() // 2))
    more: dict = {"device_mesh": mesh, "sharding_strategy": ShardingStrategy.HYBRID_SHARD,
                  "use_orig_params": True, "device_id": CPU}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = _dense()
        if nested:
            for i, layer in enumerate(plain):
                plain[i] = FullyShardedDataParallel(layer, **more)
        model = FullyShardedDataParallel(plain, **more)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        _step(model, torch.randn(4, 8))
        optimizer.step()
        FullyShardedDataParallel.set_state_dict_type(model, StateDictType.SHARDED_STATE_DICT)
        saved = copy.deepcopy(model.state_dict())
        states = FullyShardedDataParallel.optim_state_dict(model, optimizer)
        _all_hybrid(saved, states, mesh)
        before = {name: whole(tensor) for name, tensor in saved.items()}
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(1)
        model.load_state_dict(saved)
        loaded = FullyShardedDataParallel.optim_state_dict_to_load(model, optimizer, states)
        optimizer.load_state_dict(loaded)
        for name, tensor in model.state_dict().items():
            assert torch.equal(whole(tensor), before[name]), name
    return len(before)


def _all_hybrid(saved: dict, states: dict, mesh: DeviceMesh) -> None:
    """Each tensor is copied over the first axis and sharded over the second."""
    entries = list(saved.values())
    for state in states["state"].values():
        entries += [value for key, value in state.items() if key != "step"]
    for tensor in entries:
        assert isinstance(tensor, DTensor) and tensor.device_mesh == mesh
        assert tensor.placements == (Replicate(), Shard(0))


@pytest.mark.parametrize("nested", [False, True])
def test_states_of_hybrid_shards_are_sharded_tensors(eight, nested):
    assert eight.run("HSDP state dict", hybrid_states, nested) == [8] * RANKS


# --- FSDP2 in several dimensions -----------------------------------------------------------


class Wide(nn.Module):
    def __init__(self, dim: int, times: int) -> None:
        super().__init__()
        self.up = nn.Linear(dim, times * dim)
        self.down = nn.Linear(times * dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.down(torch.relu(self.up(x))))


def several_axes(dim: int, reshard: bool, recompute: bool, steps: int) -> list[float]:
    names = ("pp", "dp", "tp")
    mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=names)
    torch.manual_seed(42)
    plain = nn.Sequential(*(Wide(dim, times) for times in (3, 4, 3)))
    model = copy.deepcopy(plain)
    for block in model:
        parallelize_module(block, mesh["tp"], {
            "up": ColwiseParallel(use_local_output=False), "down": RowwiseParallel(),
        })
    for i, block in enumerate(model):
        model[i] = checkpoint_wrapper(block) if recompute else block
        fully_shard(model[i], mesh=mesh["dp"], reshard_after_forward=reshard)
    fully_shard(model, mesh=mesh["dp"], reshard_after_forward=reshard)
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.01, foreach=False)
                  for m in (plain, model)]
    torch.manual_seed(42 + mesh["dp"].get_local_rank() + 1)
    losses = []
    for step in range(steps):
        x = torch.randn(8, dim)
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=step % 2 == 0)
        wanted, found = (_step(m, x) for m in (plain, model))
        torch.testing.assert_close(found, wanted)
        _average(plain, mesh.get_group("dp"))
        for optimizer in optimizers:
            optimizer.step()
        losses.append(found.item())
    for parameter in model.parameters():
        assert isinstance(parameter, DTensor) and len(parameter.placements) == 2
        assert parameter.device_mesh.mesh_dim_names == ("dp", "tp")
    return losses


AXES = [
    pytest.param(d, r, c, 10 if soak else 4, marks=LONG if soak else [])
    for soak, cases in (
        (False, [(5, True, False), (16, False, True)]),
        (True, itertools.product((3, 5, 16, 17), (True, False), (True, False))),
    )
    for d, r, c in cases
]


@pytest.mark.parametrize("dim, reshard, recompute, steps", AXES)
def test_fsdp2_on_one_axis_of_three_trains_as_a_copy_does(eight, dim, reshard, recompute, steps):
    losses = eight.run("FSDP2 n-d", several_axes, dim, reshard, recompute, steps)
    # Of ranks which differ in "pp" and "tp" alone.
    assert losses[0] == losses[1] == losses[4] == losses[5]


class Experts(nn.Module):
    """Experts by token: token t is for expert t % count. Some of them, or all."""

    def __init__(self, count: int, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(count, dim, dim) / dim**0.5)
        self._count = count
        self.group: Any = None

    def forward(self, x: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        expert = tokens % self._count
        order = expert.argsort(stable=True)
        if self.group is None:
            out = self._apply_all(x[order], expert[order], 0)
        else:
            out = self._exchange(x[order], expert[order])
        return torch.zeros_like(x).index_copy(0, order, out)

    def _apply_all(self, x: torch.Tensor, expert: torch.Tensor, first: int) -> torch.Tensor:
        weight = self.weight
        return torch.einsum("nd,nde->ne", x, weight[expert - first])

    def _exchange(self, x: torch.Tensor, expert: torch.Tensor) -> torch.Tensor:
        """Rows go to the ranks of their experts, and come back."""
        from torch.distributed.nn.functional import all_to_all_single

        size, rank = dist.get_world_size(self.group), dist.get_rank(self.group)
        each = self._count // size
        sent = torch.bincount(expert // each, minlength=size)
        taken = torch.empty_like(sent)
        dist.all_to_all_single(taken, sent, group=self.group)
        give, take = sent.tolist(), taken.tolist()
        numbers = expert.new_empty(sum(take))
        dist.all_to_all_single(numbers, expert, take, give, group=self.group)
        came = x.new_empty(sum(take), x.shape[1])
        came = all_to_all_single(came, x, take, give, group=self.group)
        done = self._apply_all(came, numbers, rank * each)
        return all_to_all_single(torch.empty_like(x), done, give, take, group=self.group)


class Sparse(nn.Module):
    """An embedding, 2 layers of a split pair and experts, and an output."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, 16)
        self.dense = nn.ModuleList(Wide(16, 2) for _ in range(2))
        self.experts = nn.ModuleList(Experts(8, 16) for _ in range(2))
        self.output = nn.Linear(16, 256)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        tokens = tokens.flatten()
        x = self.embedding(tokens)
        for dense, experts in zip(self.dense, self.experts):
            x = x + dense(x)
            x = x + experts(x, tokens)
        return self.output(x).square().mean(-1)


def _parallel_sparse(plain: Sparse, dense: DeviceMesh, sparse: DeviceMesh) -> Sparse:
    model = copy.deepcopy(plain)
    ep = sparse["ep"]
    for experts in model.experts:
        experts.group = ep.get_group()
        own = experts.weight.detach().chunk(ep.size())[ep.get_local_rank()]
        experts.weight = nn.Parameter(own.clone())
        fully_shard(experts, mesh=sparse["replicate", "efsdp"],
                    shard_placement_fn=lambda parameter: Shard(1))
    for block in model.dense:
        if dense["tp"].size() > 1:
            parallelize_module(block, dense["tp"], {
                "up": ColwiseParallel(), "down": RowwiseParallel(),
            })
        fully_shard(block, mesh=dense["replicate", "shard"])
    fully_shard([model.embedding, model.output], mesh=dense["replicate", "shard"])
    fully_shard(model, mesh=dense["replicate", "shard"])
    return model


def tensor_and_experts(tp: int, replicate: int, steps: int) -> list[float]:
    rank, size = dist.get_rank(), dist.get_world_size()
    shard = size // tp // replicate
    dense = init_device_mesh("cpu", (replicate, shard, tp),
                             mesh_dim_names=("replicate", "shard", "tp"))
    sparse = init_device_mesh("cpu", (replicate, shard // 2, 2, tp),
                              mesh_dim_names=("replicate", "efsdp", "ep", "tp"))
    torch.manual_seed(42)
    plain = Sparse()
    model = _parallel_sparse(plain, dense, sparse)
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.01, foreach=False)
                  for m in (plain, model)]
    torch.manual_seed(42 + rank // tp)
    losses = []
    for _ in range(steps):
        tokens = torch.randint(256, (2, 32))
        for optimizer in optimizers:
            optimizer.zero_grad()
        wanted, found = (_step(m, tokens) for m in (plain, model))
        torch.testing.assert_close(found, wanted)
        _average(plain, names=lambda name: "experts" not in name)
        for experts in plain.experts:
            grad = experts.weight.grad
            dist.all_reduce(grad, group=sparse.get_group("ep"))
            for axis in ("efsdp", "replicate"):
                dist.all_reduce(grad, dist.ReduceOp.AVG, group=sparse.get_group(axis))
        for optimizer in optimizers:
            optimizer.step()
        losses.append(found.item())
    ep = sparse["ep"]
    for ours, theirs in zip(model.experts, plain.experts):
        own = theirs.weight.detach().chunk(ep.size())[ep.get_local_rank()]
        torch.testing.assert_close(whole(ours.weight), own, rtol=1e-4, atol=1e-4)
    return losses


@pytest.mark.parametrize("tp, replicate", [
    (1, 1), (2, 2), *(pytest.param(*pair, marks=LONG) for pair in ((1, 2), (2, 1))),
])
def test_experts_and_tensor_parallel_layers_share_the_ranks(eight, tp, replicate):
    eight.run("FSDP2 tp x ep", tensor_and_experts, tp, replicate, 3)


# --- the table ---------------------------------------------------------------------------


def test_groups_over_the_same_ranks_share_a_communicator(eight, capsys):
    """The last one: it tells what those before it have opened."""
    rows: dict[str, list[int]] = {}
    for scope, groups, communicators in eight.table:
        row = rows.setdefault(scope, [0, 0])
        row[0] += groups
        row[1] = communicators
    with capsys.disabled():
        print(f"\n{'scope, rank 0 of 8':<26}{'groups made':>12}{'communicators':>15}")
        for scope, (groups, communicators) in rows.items():
            print(f"{scope:<26}{groups:>12}{communicators:>15}")
    made = sum(groups for groups, _ in rows.values())
    if made:
        assert max(row[1] for row in rows.values()) < made
