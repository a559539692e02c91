"""The model of llama/ in plain PyTorch, and a comparison with what raddle trained.

usage: reference.py FOLDER STEPS.jsonl HEADS KV_HEADS

FOLDER is that of `raddle train --export`: initial.safetensors, tokens.safetensors
and gradients.safetensors (of the first step, not clipped). STEPS.jsonl is the
output of --json. Prints a line for each comparison; exit status 1 if one fails.
"""

# SPDX-License-Identifier: BSD-3-Clause
import json
import math
import struct
import sys

import numpy
import torch
from torch.nn import functional

LOSS = 1e-4  # relative
GRADIENT = 1e-3  # of its norm
NORM = 1e-4  # relative

DTYPES = {"F32": numpy.float32, "I32": numpy.int32}


def read_tensors(path):
    """A safetensors file: a length of 8 bytes, a header in JSON, the data."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        flat = numpy.frombuffer(data[begin:end], DTYPES[entry["dtype"]])
        tensors[name] = torch.from_numpy(flat.reshape(entry["shape"]).copy())
    return tensors


def frequencies(head_dim, theta=5e5, factor=8.0, low=1.0, high=4.0, context=8192):
    found = []
    for i in range(head_dim // 2):
        f = theta ** (-2 * i / head_dim)
        wave = 2 * math.pi / f
        if wave > context / low:
            f /= factor
        elif wave >= context / high:
            part = (context / wave - low) / (high - low)
            f = (1 - part) * f / factor + part * f
        found.append(f)
    return torch.tensor(found, dtype=torch.float32)


class Llama:
    """Functions of a dictionary of weights, named as in the state dict."""

    def __init__(self, weights, heads, kv_heads):
        self.weights = weights
        self.heads = heads
        self.kv_heads = kv_heads
        query = weights["layers.0.attention.qkv_linear.wq.weight"]
        self.head_dim = query.shape[0] // heads
        self.layers = sum(name.endswith(".wq.weight") for name in weights)
        self.frequencies = frequencies(self.head_dim)

    def norm(self, name, x):
        weight = self.weights[name + ".weight"]
        return functional.rms_norm(x, weight.shape, weight, 1e-5)

    def linear(self, name, x):
        return functional.linear(x, self.weights[name + ".weight"])

    def turned(self, x, turns):
        """x: length, heads, head_dim, of which each pair is a complex number."""
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * turns[:, None]).flatten(-2)

    def attention(self, name, x, turns, mask):
        def heads_of(part, count):
            y = self.linear(f"{name}.qkv_linear.{part}", x)
            return y.unflatten(-1, (count, self.head_dim))

        query = self.turned(heads_of("wq", self.heads), turns)
        key = self.turned(heads_of("wk", self.kv_heads), turns)
        value = heads_of("wv", self.kv_heads)
        times = self.heads // self.kv_heads
        key, value = (y.repeat_interleave(times, dim=1) for y in (key, value))
        y = functional.scaled_dot_product_attention(
            *(part.transpose(0, 1)[None] for part in (query, key, value)),
            attn_mask=mask,
            is_causal=mask is None,
        )
        return self.linear(name + ".wo", y[0].transpose(0, 1).flatten(1))

    def feed_forward(self, name, x):
        gate = functional.silu(self.linear(name + ".w1", x))
        return self.linear(name + ".w2", gate * self.linear(name + ".w3", x))

    def logits(self, tokens, positions):
        """Of one row, in which a document begins wherever a position is 0."""
        order = torch.arange(len(tokens))
        documents = (positions == 0).cumsum(0)
        mask = None  # PyTorch has a faster way for one document
        if documents[-1] > 1:
            mask = (order[:, None] >= order) & (documents[:, None] == documents)
        angles = positions.float()[:, None] * self.frequencies
        turns = torch.polar(torch.ones_like(angles), angles)
        x = self.weights["tok_embeddings.weight"][tokens.long()]
        for layer in range(self.layers):
            name = f"layers.{layer}"
            y = self.norm(name + ".attention_norm", x)
            x = x + self.attention(name + ".attention", y, turns, mask)
            y = self.norm(name + ".ffn_norm", x)
            x = x + self.feed_forward(name + ".feed_forward", y)
        return self.linear("lm_head", self.norm("norm", x))

    def backward(self, tokens, labels, positions):
        """Adds to the gradients; answers the loss of these rows."""
        valid = (labels != -100).sum()
        loss = 0.0
        for row in range(len(tokens)):
            mine = functional.cross_entropy(
                self.logits(tokens[row], positions[row]),
                labels[row].long(),
                ignore_index=-100,
                reduction="sum",
            )
            mine = mine / valid
            mine.backward()
            loss += mine.item()
        return loss


def optimizer_of(weights):
    return torch.optim.AdamW(
        weights.values(), lr=1.0, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1
    )


def gradient_norm(weights):
    """In double precision: PyTorch's own is exact to about 1e-4."""
    return math.sqrt(sum((w.grad.double() ** 2).sum().item() for w in weights))


def step(model, optimizer, rate, tokens, labels, positions, look=None):
    """One optimizer step: the loss, and the gradient's norm before clipping."""
    optimizer.zero_grad()
    loss = model.backward(tokens, labels, positions)
    if look is not None:
        look()
    norm = gradient_norm(model.weights.values())
    torch.nn.utils.clip_grad_norm_(model.weights.values(), 1.0)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    return loss, norm


class Verdict:
    def __init__(self):
        self.failed = False

    def say(self, what, difference, most):
        fine = difference <= most  # NaN is not
        self.failed = self.failed or not fine
        print(f"{'ok  ' if fine else 'FAIL'} {what}: {difference:.2e} (most {most:g})")


def compare_gradients(verdict, model, theirs):
    for name, weight in model.weights.items():
        difference = (weight.grad - theirs[name]).norm() / weight.grad.norm()
        verdict.say("gradient of " + name, difference.item(), GRADIENT)


def main(folder, steps_file, heads, kv_heads):
    torch.set_num_threads(1)
    with open(steps_file, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    lines = [line for line in lines if "step" in line]
    weights = read_tensors(f"{folder}/initial.safetensors")
    gradients = read_tensors(f"{folder}/gradients.safetensors")
    data = read_tensors(f"{folder}/tokens.safetensors")
    for weight in weights.values():
        weight.requires_grad_()
    model = Llama(weights, heads, kv_heads)
    optimizer = optimizer_of(weights)
    verdict = Verdict()
    if set(gradients) != set(weights) or len(lines) != len(data["tokens"]):
        print("FAIL the files do not belong together")
        return 1
    for i, line in enumerate(lines):
        loss, norm = step(
            model,
            optimizer,
            line["learning_rate"],
            *(data[name][i] for name in ("tokens", "labels", "positions")),
            look=(lambda: compare_gradients(verdict, model, gradients))
            if i == 0
            else None,
        )
        verdict.say(f"loss of step {i + 1}", abs(line["loss"] - loss) / loss, LOSS)
        verdict.say(
            f"norm of step {i + 1}", abs(line["grad_norm"] - norm) / norm, NORM
        )
    return int(verdict.failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
