"""How fast PyTorch trains the debug model, without compiling it, on one rank and one
thread: the rows of train_step.c up to TOKENS/S, as train_step_pytorch.
"""

# SPDX-License-Identifier: BSD-3-Clause
import os
import sys
import time

import torch

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "tests", "parity"))
from reference import Llama, optimizer_of, step  # noqa: E402

DIM, LAYERS, HIDDEN, VOCAB, HEADS = 256, 6, 768, 2048, 16
TURNS = 3


def make_weights():
    blocks = {
        "attention.qkv_linear.wq": (DIM, DIM),
        "attention.qkv_linear.wk": (DIM, DIM),
        "attention.qkv_linear.wv": (DIM, DIM),
        "attention.wo": (DIM, DIM),
        "feed_forward.w1": (HIDDEN, DIM),
        "feed_forward.w2": (DIM, HIDDEN),
        "feed_forward.w3": (HIDDEN, DIM),
        "attention_norm": (DIM,),
        "ffn_norm": (DIM,),
    }
    shapes = {"tok_embeddings": (VOCAB, DIM), "lm_head": (VOCAB, DIM), "norm": (DIM,)}
    for layer in range(LAYERS):
        for name, shape in blocks.items():
            shapes[f"layers.{layer}.{name}"] = shape
    weights = {}
    for name, shape in shapes.items():
        weight = torch.ones(shape) if len(shape) == 1 else torch.randn(shape) * 0.02
        weights[name + ".weight"] = weight.requires_grad_()
    return weights


def measure(length, rows):
    weights = make_weights()
    model = Llama(weights, HEADS, HEADS)
    optimizer = optimizer_of(weights)
    tokens = torch.randint(0, VOCAB, (rows, length))
    positions = torch.arange(length).expand(rows, length)
    best = float("inf")
    for _ in range(TURNS):
        start = time.process_time()
        step(model, optimizer, 1e-4, tokens, tokens.roll(-1, 1), positions)
        best = min(best, time.process_time() - start)
    count = rows * length
    print(
        "train_step_pytorch",
        length,
        count,
        f"{best:.4f}",
        f"{count / best:.0f}",
        sep="\t",
        flush=True,
    )


torch.set_num_threads(1)
torch.manual_seed(42)
for size in ((256, 8), (1024, 2), (2048, 1)):
    measure(*size)
