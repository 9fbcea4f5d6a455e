"""A small training that fragments memory: batches differ in length, and each step keeps its loss's graph a while.

usage: train.py [--steps N] [--rooms MIB,MIB...] [--snapshot FILE] [--allocator native|expandable|cistern]

Before anything is measured, each size of a batch is computed once, since kernels that are loaded take of what is free.
--rooms: the training runs once for each; so many MiB of the device are left to it, the rest is held, as another program would.
--snapshot: the allocator's history is recorded, and dumped at the end or when memory runs out, of the last room.
Prints a line of JSON for each: whether all steps were done, the most that PyTorch reserved, and what it might take. Exit code 0
either way.
"""

import argparse
import ctypes
import gc
import json
import os
import random

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--steps", type=int, default=60)
options.add_argument("--rooms", default="0")
options.add_argument("--snapshot", default="")
options.add_argument("--allocator", default="native")
options = options.parse_args()
if options.allocator == "expandable":
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
import torch

if options.allocator == "cistern":
    import cistern_torch

    cistern_torch.enable("caching")

MIB = 1 << 20
HEADS, WIDTH, LAYERS = 8, 512, 6


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.first = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.second = torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        attended, _ = self.attention(x, x, x, need_weights=True)  # Weights of all pairs: the memory of long batches.
        return x + self.second(torch.nn.functional.gelu(self.first(x + attended)))


LENGTHS = range(128, 1024, 32)


def empty_cache():
    gc.collect()
    torch.cuda.synchronize()
    (cistern_torch if options.allocator == "cistern" else torch.cuda).empty_cache()


def hold_rest(free_bytes):
    """Holds all that is free but for some bytes, outside PyTorch's allocator. Returns what frees it."""
    free, _ = torch.cuda.mem_get_info()
    rest = (free - free_bytes) // (2 * MIB) * (2 * MIB)
    address, driver = ctypes.c_uint64(), ctypes.CDLL("libcuda.so.1")
    result = driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(rest))
    assert result == 0, f"cuMemAlloc: {result}"
    return lambda: driver.cuMemFree_v2(address)


def train_step(model, optimizer, kept):
    batch, length = random.choice([2, 4, 6, 8]), random.choice(LENGTHS)
    x = torch.randn(batch, length, WIDTH, device="cuda")
    y = model(x)
    loss = (y - x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    kept.append(y[:, : random.randrange(16, 64)].detach().clone())  # A small block that outlives its step.
    if len(kept) > 24:
        kept.pop(random.randrange(len(kept)))


def new_model():
    model = torch.nn.Sequential(*[Block() for _ in range(LAYERS)]).cuda()
    return model, torch.optim.AdamW(model.parameters(), 1e-4)


def warm_up():
    model, optimizer = new_model()
    for length in LENGTHS:
        for batch in (2, 4, 6, 8):
            x = torch.randn(batch, length, WIDTH, device="cuda")
            (model(x) - x).square().mean().backward()
    optimizer.step()


def steps():
    """Trains; returns how many steps were done, and the error."""
    model, optimizer = new_model()
    kept, done = [], 0
    try:
        for _ in range(options.steps):
            train_step(model, optimizer, kept)
            done += 1
        return done, ""
    except RuntimeError as refusal:  # torch.OutOfMemoryError is one.
        error = str(refusal).splitlines()[0]
        if "out of memory" not in error.lower():
            raise
        return done, error
    finally:
        if options.snapshot:
            torch.cuda.memory._dump_snapshot(options.snapshot)


def run(room_mib):
    empty_cache()
    random.seed(7)
    torch.manual_seed(7)
    free_rest = hold_rest(room_mib * MIB) if room_mib else lambda: None
    native = options.allocator != "cistern"
    # What the allocator may take: what it holds, and what is free.
    room = torch.cuda.mem_get_info()[0] + (torch.cuda.memory_reserved() if native else 0)
    if native:
        torch.cuda.reset_peak_memory_stats()
    if options.snapshot:
        torch.cuda.memory._record_memory_history(stacks="python")
    done, error = steps()
    print(json.dumps({
        "program": "train.py",
        "allocator": options.allocator,
        "steps": done,
        "completed": done == options.steps,
        "roomMiB": room_mib,
        "roomBytes": room,
        "reservedPeakBytes": torch.cuda.max_memory_reserved() if native else None,
        "torch": torch.__version__,
        "error": error,
    }), flush=True)
    empty_cache()
    free_rest()


warm_up()
for room_mib in options.rooms.split(","):
    run(int(room_mib))
