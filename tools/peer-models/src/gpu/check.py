"""Measures PyTorch's allocator on a GPU, to check the models of it, and takes a snapshot of a real lack of memory.

usage: check.py OUT.tar.gz [--distribution DIR] TRACE.csv.gz ...

1. Each trace is replayed through PyTorch's allocator, native and with expandable segments: reserved bytes after one pass and ten.
2. The smallest room on which a pass completes is found by bisection, to 16 MiB, and the same is said for ten rooms around it.
3. train.py runs with a history and without a lack of memory, and in ten rooms around the edge: with native, expandable, and with
   Cistern if a distribution is named. Its snapshot without enough memory is the one that ships (oom.pickle.gz).

The file has results.jsonl, train.pickle.gz and oom.pickle.gz. compare.py compares it with `cistern fit`.
"""

import argparse
import ctypes
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

MIB = 1 << 20
STEP = 16 * MIB
HERE = pathlib.Path(__file__).resolve().parent


def rows_of(file):
    with gzip.open(file, "rt") as lines:
        next(lines)
        for line in lines:
            op, block, byte_size, stream = line.split(",")[:4]
            yield op, int(block), int(byte_size), int(stream)


def replay(file, rows):
    """Replays a trace in this process, whose environment has the allocator's settings. One line of JSON for each result."""
    import torch

    torch.cuda.init()
    torch.zeros(1, device="cuda")
    torch.cuda.empty_cache()
    streams = [torch.cuda.Stream() for _ in range(max(row[3] for row in rows) + 1)]
    allocate = torch._C._cuda_cudaCachingAllocator_raw_alloc
    delete = torch._C._cuda_cudaCachingAllocator_raw_delete

    def one_pass():
        live = {}
        try:
            for op, block, byte_size, stream in rows:
                if op == "a":
                    live[block] = allocate(byte_size, streams[stream].cuda_stream)
                else:
                    delete(live.pop(block))
            return True
        except RuntimeError as refusal:
            if "out of memory" not in str(refusal):
                raise
            return False
        finally:
            for address in live.values():
                delete(address)

    def say(**fields):
        print(json.dumps({"trace": file.name.removesuffix(".csv.gz"), **fields}), flush=True)

    for passes in (1, 9):
        for _ in range(passes):
            assert one_pass()
        say(kind="reserved", passes=1 if passes == 1 else 10, reservedPeakBytes=torch.cuda.max_memory_reserved())
    peak = torch.cuda.max_memory_reserved()
    driver = ctypes.CDLL("libcuda.so.1")

    def completes(room):
        torch.cuda.empty_cache()
        free = torch.cuda.mem_get_info()[0]
        address = ctypes.c_uint64()
        result = driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t((free - room) // (2 * MIB) * (2 * MIB)))
        assert result == 0, result
        try:
            return one_pass()
        finally:
            torch.cuda.empty_cache()
            driver.cuMemFree_v2(address)

    fails, serves = 0, -(-peak // STEP)
    while not completes(serves * STEP):
        fails, serves = serves, serves + serves // 16 + 1
    while serves - fails > 1:
        middle = (fails + serves) // 2
        fails, serves = (fails, middle) if completes(middle * STEP) else (middle, serves)
    say(kind="smallest", smallestBytes=serves * STEP)
    for steps in range(serves - 5, serves + 5):
        say(kind="room", roomBytes=steps * STEP, completed=completes(steps * STEP))


def lines(command, environment=None):
    run = subprocess.run(command, env={**os.environ, **(environment or {})}, capture_output=True, text=True)
    if run.returncode != 0:
        print(run.stderr[-3000:], file=sys.stderr)
        return [{"kind": "failed", "command": [str(part) for part in command], "error": run.stderr[-500:]}]
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


def train(results, folder, distribution):
    whole = lines([sys.executable, HERE / "train.py", "--snapshot", folder / "train.pickle"])
    results += whole
    if "reservedPeakBytes" not in whole[0]:
        return
    for allocator in ["native", "expandable"] + (["cistern"] if distribution else []):
        environment = {"PYTHONPATH": f"{distribution}/python"} if allocator == "cistern" else {}

        def run(mib, *more):
            [line] = lines([sys.executable, HERE / "train.py", "--allocator", allocator, "--free", str(mib), *more], environment)[-1:]
            return {**line, "kind": "train-room", "roomMiB": mib}

        fails, serves = 0, whole[0]["reservedPeakBytes"] // STEP * 2
        while serves - fails > 1:
            middle = (fails + serves) // 2
            fails, serves = (fails, middle) if run(16 * middle).get("completed") else (middle, serves)
        results += [run(16 * steps) for steps in range(serves - 5, serves + 5)]
        if allocator == "native":
            results.append({**run(16 * (serves - 2), "--snapshot", str(folder / "oom.pickle")), "kind": "shipped"})


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("out")
    options.add_argument("--distribution", default="")
    options.add_argument("--replay", default="")
    options.add_argument("traces", nargs="*")
    options = options.parse_args()
    if options.replay:
        file = pathlib.Path(options.replay)
        replay(file, list(rows_of(file)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder, results = pathlib.Path(name), []
        for trace in options.traces:
            for allocator in ("native", "expandable"):
                conf = "expandable_segments:True" if allocator == "expandable" else ""
                found = lines([sys.executable, __file__, "-", "--replay", trace], {"PYTORCH_CUDA_ALLOC_CONF": conf})
                results += [{**each, "allocator": allocator} for each in found]
                print(trace, allocator, found[:3], file=sys.stderr, flush=True)
        train(results, folder, options.distribution)
        (folder / "results.jsonl").write_text("".join(json.dumps(each) + "\n" for each in results))
        with tarfile.open(options.out, "w:gz") as out:
            out.add(folder / "results.jsonl", "results.jsonl")
            for pickle in ("train.pickle", "oom.pickle"):
                if (folder / pickle).exists():
                    (folder / (pickle + ".gz")).write_bytes(gzip.compress((folder / pickle).read_bytes()))
                    out.add(folder / (pickle + ".gz"), pickle + ".gz")


main()
