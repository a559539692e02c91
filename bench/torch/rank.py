# SPDX-License-Identifier: BSD-3-Clause
"""One rank of the benchmark: gloo and raddle by turns, in one process.

Each turn is timed from a barrier on, and counts as long as on the rank on which it took
longest. Rank 0 prints a line of JSON for each thing measured: its name, bytes, and the
seconds of each turn by backend.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from llama import VOCAB, Llama
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

import raddle.torch  # noqa: F401 (registers the backend)

# Newer names of PyTorch's, where there are such.
all_gather = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
reduce_scatter = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)

BACKENDS = ("gloo", "raddle")
Body = Callable[[str], None]


class Bench:
    """The groups of both backends over all ranks, and the clock."""

    def __init__(self, turns: int):
        self.turns = turns
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.groups = {"raddle": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
        # One rank alone: nobody is waited for, so what is left is the way through Python.
        self.alone = {}
        for backend in BACKENDS:
            for rank in range(self.size):
                group = dist.new_group([rank], backend=backend)
                if rank == self.rank:
                    self.alone[backend] = group

    def time(self, bodies: dict[str, Body], repeats: int) -> dict[str, list[float]]:
        """Seconds of one call of each body, by name, in each turn."""
        taken = torch.zeros(self.turns, len(bodies), dtype=torch.float64)
        for name, body in bodies.items():
            body(name)
        for turn in range(self.turns):
            for column, (name, body) in enumerate(bodies.items()):
                dist.barrier(self.groups["raddle"])
                start = time.perf_counter()
                for _ in range(repeats):
                    body(name)
                taken[turn, column] = (time.perf_counter() - start) / repeats
        dist.all_reduce(taken, op=dist.ReduceOp.MAX)
        return {name: taken[:, column].tolist() for column, name in enumerate(bodies)}

    def tell(self, name: str, size: int, seconds: dict[str, list[float]]) -> None:
        if self.rank == 0:
            row = {"name": name, "ranks": self.size, "bytes": size, "seconds": seconds}
            print(json.dumps(row), flush=True)

    def compare(self, name: str, size: int, body: Body, repeats: int) -> None:
        self.tell(name, size, self.time(dict.fromkeys(BACKENDS, body), repeats))


def _repeats(size: int) -> int:
    return max(1, min(50, (1 << 22) // size))


def collectives(bench: Bench, sizes: list[int]) -> None:
    for size in sizes:
        count = max(bench.size, size // 4)
        whole = torch.ones(count - count % bench.size)
        part = torch.ones(whole.numel() // bench.size)
        result = torch.zeros_like(whole)
        groups = bench.groups
        # The bytes are those of the larger buffer; sums of zeros stay finite.
        bodies: dict[str, Body] = {
            "all_reduce": lambda b: dist.all_reduce(result, group=groups[b]),
            "all_gather": lambda b: all_gather(result, part, group=groups[b]),
            "reduce_scatter": lambda b: reduce_scatter(part, result, group=groups[b]),
            "all_to_all": lambda b: dist.all_to_all_single(result, whole, group=groups[b]),
            "broadcast": lambda b: dist.broadcast(result, 0, group=groups[b]),
        }
        for name, body in bodies.items():
            result.zero_()
            bench.compare(name, whole.numel() * 4, body, _repeats(size))
    bench.compare("barrier", 0, lambda b: dist.barrier(bench.groups[b]), 50)


def new_group(bench: Bench) -> None:
    """A group of all ranks, its first call, and its end. PyTorch makes each group wait at
    a barrier over its store, which is part of it."""
    one = torch.ones(1)

    def make(backend: str) -> None:
        group = dist.new_group(list(range(bench.size)), backend=backend)
        dist.all_reduce(one, group=group)
        dist.destroy_process_group(group)

    bench.compare("new_group", 0, make, 3)


def overhead(bench: Bench) -> None:
    one = torch.ones(2)
    bench.compare("python_per_call", 8, lambda b: dist.all_reduce(one, group=bench.alone[b]), 500)


class Step:
    """Forward, backward and optimizer of a Llama in shards, or of one that is whole."""

    def __init__(self, group: dist.ProcessGroup | None, tokens: torch.Tensor):
        torch.manual_seed(1)
        self.model = Llama()
        if group is not None:
            mesh = DeviceMesh.from_group(group, "cpu")
            for layer in self.model.layers:
                fully_shard(layer, mesh=mesh)
            fully_shard(self.model, mesh=mesh)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.tokens = tokens

    def gradients(self) -> None:
        self.optimizer.zero_grad()
        logits = self.model(self.tokens)
        nn.functional.cross_entropy(logits, self.tokens.roll(-1, 1).flatten()).backward()

    def run(self) -> None:
        self.gradients()
        self.optimizer.step()


def fsdp_step(bench: Bench, length: int) -> None:
    """The whole step; and of forward and backward, what is beyond those of a model that
    is whole, all ranks computing at once: the time outside compute."""
    torch.manual_seed(2 + bench.rank)
    tokens = torch.randint(0, VOCAB, (1, length))
    steps = {name: Step(bench.groups.get(name), tokens) for name in (*BACKENDS, "compute")}
    bench.compare("fsdp_step", length, lambda b: steps[b].run(), 2)
    seconds = bench.time(dict.fromkeys(steps, lambda name: steps[name].gradients()), 2)
    bench.tell("fsdp_gradients", length, {b: seconds[b] for b in BACKENDS})
    compute = seconds["compute"]
    bench.tell("fsdp_outside_compute", length,
               {b: [t - c for t, c in zip(seconds[b], compute)] for b in BACKENDS})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, required=True)
    parser.add_argument("--sizes", required=True)
    parser.add_argument("--length", type=int, required=True)
    parser.add_argument("--parts", required=True)
    options = parser.parse_args()

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    dist.init_process_group("raddle", init_method="file://" + os.environ["BENCH_STORE"],
                            rank=int(os.environ["RANK"]),
                            world_size=int(os.environ["WORLD_SIZE"]))
    bench = Bench(options.turns)
    parts = options.parts.split(",")
    if "overhead" in parts:
        overhead(bench)
    if "collectives" in parts:
        collectives(bench, [int(size) for size in options.sizes.split(",")])
    if "new_group" in parts:
        new_group(bench)
    if "fsdp" in parts:
        fsdp_step(bench, options.length)
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
