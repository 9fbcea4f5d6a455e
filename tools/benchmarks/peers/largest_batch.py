"""The largest batch of GPT-2 training that fits on a device of 8, 16 or 32 GB, with each allocator inside PyTorch. A process that
holds the rest makes the device small; the context and all libraries of the job count. The sequence length is drawn anew in each of
the steps of a batch, so that memory fragments as in real training; a batch fits if all of its steps do.
Prints a line of JSON for each device and allocator.
usage: largest_batch.py DISTRIBUTION [--gigabytes 8,16,32] [--allocators default,expandable,async,cistern] [--steps 6]"""

import argparse
import ctypes
import json
import os
import pathlib
import random
import subprocess
import sys
import time

GIB = 1 << 30


def main():
    options = argparse.ArgumentParser()
    options.add_argument("distribution")
    options.add_argument("--gigabytes", default="8,16,32")
    options.add_argument("--allocators", default="default,expandable,async,cistern")
    options.add_argument("--steps", type=int, default=6)
    options.add_argument("--worker", nargs=2)
    options.add_argument("--hold", type=float)
    given = options.parse_args()
    if given.hold:
        hold(given.hold)
    elif given.worker:
        work(given.worker[0], float(given.worker[1]), given.steps, given.distribution)
    else:
        for gigabytes in given.gigabytes.split(","):
            measure(gigabytes, given)


def measure(gigabytes, given):
    this = [sys.executable, __file__, given.distribution, "--steps", str(given.steps)]
    holder = subprocess.Popen([*this, "--hold", gigabytes], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    print(holder.stdout.readline(), end="", flush=True)
    for conf in given.allocators.split(","):
        begun = time.monotonic()
        done = subprocess.run(
            [*this, "--worker", conf, gigabytes], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(conf)
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        line = lines[-1] if lines else json.dumps({"conf": conf, "gigabytes": gigabytes, "failure": done.stderr[-1500:]})
        print(line, round(time.monotonic() - begun, 1), flush=True)
    holder.communicate("")


def environment(conf):
    names = {"expandable": "expandable_segments:True", "async": "backend:cudaMallocAsync"}
    return {**os.environ, **({"PYTORCH_CUDA_ALLOC_CONF": names[conf]} if conf in names else {})}


def hold(gigabytes):
    """Holds all but so much of the device until standard input ends."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, free, total, address = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_uint64()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    failed = cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(free.value - int(gigabytes * 1e9)))
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    print(json.dumps({"gigabytes": gigabytes, "failed": failed, "freeBytes": free.value}), flush=True)
    sys.stdin.read()


def work(conf, gigabytes, steps, distribution):
    import torch

    if conf == "cistern":
        sys.path.insert(0, str(pathlib.Path(distribution) / "python"))
        import cistern_torch

        cistern_torch.enable()
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=12)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)

    def fits(batch):
        draw = random.Random(batch)
        try:
            for _ in range(steps):
                tokens = torch.randint(0, 50257, (batch, draw.randrange(128, 512, 32)), device="cuda")
                with torch.autocast("cuda", torch.bfloat16):
                    loss = model(tokens, labels=tokens).loss
                loss.backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            torch.cuda.synchronize()
            return True
        except RuntimeError as failure:  # wheels before 2.7 know no other for memory of others
            if "memory" not in str(failure):
                raise
            return False

    def attempt(batch):
        ok = fits(batch)
        optimizer.zero_grad(set_to_none=True)
        if not ok:
            torch.cuda.empty_cache()
        return ok

    begun = time.monotonic()
    good, bad = 0, 1
    while attempt(bad):
        good, bad = bad, bad * 2
    while bad - good > max(1, good // 64):
        middle = (good + bad) // 2
        good, bad = (middle, bad) if attempt(middle) else (good, middle)
    print(json.dumps({"conf": conf, "gigabytes": gigabytes, "batch": good, "seconds": round(time.monotonic() - begun, 2)}))
    sys.stdout.flush()
    os._exit(0)


main()
