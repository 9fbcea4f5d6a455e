"""Measures PyTorch's allocator on a GPU, to check the models of it, and takes a snapshot of a real lack of memory.

usage: check.py OUT.tar.gz [--distribution DIR] TRACE.csv.gz ...

1. Each trace is replayed through PyTorch's allocator, native and with expandable segments: reserved bytes after one pass and ten.
2. The smallest room on which a pass completes is found by bisection, to 16 MiB, and the same is said for ten rooms around it.
3. If a distribution is named, train.py runs with a history and without a lack of memory, `cistern fit` says how small a device would
   do, and train.py runs in ten rooms around that edge: with native, expandable, and with Cistern. Its snapshot without enough
   memory is like the one that ships (oom.pickle.gz).

The file has results.jsonl, train.pickle.gz and oom.pickle.gz. compare.py compares it with `cistern fit`.
"""

import argparse
import ctypes
import fcntl
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time

MIB = 1 << 20
STEP = 16 * MIB
HERE = pathlib.Path(__file__).resolve().parent


def rows_of(file):
    with gzip.open(file, "rt") as lines:
        next(lines)
        for line in lines:
            op, block, byte_size, stream = line.split(",")[:4]
            yield op, int(block), int(byte_size), int(stream)


def replay(file, rows, turn):
    """Replays a trace in this process, whose environment has the allocator's settings. One line of JSON for each result."""
    import torch

    fcntl.flock(turn, fcntl.LOCK_EX)
    time.sleep(0.5)  # Until the memory of the program before is free.
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


def start(command, environment=None):
    return subprocess.Popen(
        [str(part) for part in command], env={**os.environ, **(environment or {})}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def lines(process):
    """The lines of JSON that a program printed, once it has ended."""
    out, error = process.communicate()
    if process.returncode != 0:
        print(error[-3000:], file=sys.stderr)
        return [{"kind": "failed", "command": process.args, "error": error[-500:]}]
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def replays(traces, turn):
    """Programs start at once, since PyTorch's import takes longer than a replay, and use the GPU in turns."""
    running = []
    for trace in traces:
        for allocator in ("native", "expandable"):
            conf = "expandable_segments:True" if allocator == "expandable" else ""
            process = start([sys.executable, __file__, turn, "--replay", trace], {"PYTORCH_CUDA_ALLOC_CONF": conf})
            running.append((allocator, process))
    return [{**each, "allocator": allocator} for allocator, process in running for each in lines(process)]


def edges(distribution, snapshot):
    """The smallest devices, in steps, as `cistern fit` tells them from a snapshot."""
    command = [f"{distribution}/cistern", "fit", snapshot, "--format", "json"]
    for allocator in ("pytorch-native", "pytorch-expandable", "caching"):
        command += ["--allocator", allocator]
    said = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)[0]["allocators"]
    names = {"pytorch-native": "native", "pytorch-expandable": "expandable", "caching": "cistern"}
    return {names[each["allocator"]]: -(-each["smallestCapacityBytes"] // STEP) for each in said}


def train(folder, distribution):
    whole = lines(start([sys.executable, HERE / "train.py", "--snapshot", folder / "train.pickle"]))
    if "reservedPeakBytes" not in whole[0]:
        return whole
    results, said = list(whole), edges(distribution, folder / "train.pickle")
    for allocator, edge in said.items():
        environment = {"PYTHONPATH": f"{distribution}/python"} if allocator == "cistern" else {}
        rooms = [16 * steps for steps in range(edge - 5, edge + 5)]
        command = [sys.executable, HERE / "train.py", "--allocator", allocator, "--rooms", ",".join(map(str, rooms))]
        ran = lines(start(command, environment))
        results += [{**each, "kind": "train-room", "edgeMiB": 16 * edge} for each in ran]
        print(allocator, 16 * edge, [(each.get("roomMiB"), each.get("completed")) for each in ran], file=sys.stderr, flush=True)
    command = [sys.executable, HERE / "train.py", "--rooms", 16 * said["native"] - 32, "--snapshot", folder / "oom.pickle"]
    return results + [{**each, "kind": "shipped"} for each in lines(start(command))]


def save(results, folder, archive):
    (folder / "results.jsonl").write_text("".join(json.dumps(each) + "\n" for each in results))
    with tarfile.open(archive, "w:gz") as out:
        out.add(folder / "results.jsonl", "results.jsonl")
        for pickle in ("train.pickle", "oom.pickle"):
            if (folder / pickle).exists():
                (folder / (pickle + ".gz")).write_bytes(gzip.compress((folder / pickle).read_bytes()))
                out.add(folder / (pickle + ".gz"), pickle + ".gz")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("out")
    options.add_argument("--distribution", default="")
    options.add_argument("--replay", default="")
    options.add_argument("traces", nargs="*")
    options = options.parse_args()
    if options.replay:
        file = pathlib.Path(options.replay)
        replay(file, list(rows_of(file)), open(options.out))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        turn = folder / "turn"
        turn.touch()
        results = train(folder, options.distribution) if options.distribution else []
        save(results, folder, options.out)
        save(results + replays(options.traces, turn), folder, options.out)


main()
