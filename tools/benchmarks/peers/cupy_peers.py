"""CuPy's memory pool under a trace: what a Python program pays, Python included.

usage: cupy_peers.py {none|memset} trace.csv [passes]    (needs a GPU and CuPy)
Prints a row with the fields of `cistern replay --format json`, times as there: medians of the passes after the first.
"""
import json
import os
import statistics
import sys
import time

import cupy


def read(path):
    """Rows of (allocates, id, bytes, stream)."""
    rows = []
    with open(path) as lines:
        for line in lines:
            cells = line.rstrip("\n").split(",")
            if cells[0] in ("a", "f"):
                rows.append((cells[0] == "a", cells[1], int(cells[2]), cells[3]))
    return rows


def requested_peak(rows):
    live, sizes, peak = 0, {}, 0
    for allocates, block, size, _ in rows:
        if allocates:
            sizes[block] = size
            live += size
            peak = max(peak, live)
        else:
            live -= sizes.pop(block)
    return peak


def replay(pool, rows, streams, writes):
    """Nanoseconds of the loop, and of the loop with the wait for the device."""
    blocks, current = {}, None
    cupy.cuda.runtime.deviceSynchronize()
    begin = time.perf_counter_ns()
    for allocates, block, size, stream in rows:
        if stream != current:  # A block goes to the arena of the stream in use.
            streams[stream].use()
            current = stream
        if allocates:
            memory = pool.malloc(size)
            if writes:
                memory.memset_async(1, size, streams[stream])
            blocks[block] = memory
        else:
            del blocks[block]
    host = time.perf_counter_ns() - begin
    cupy.cuda.runtime.deviceSynchronize()
    return host, time.perf_counter_ns() - begin


def main(work, path, passes=5):
    rows = read(path)
    streams = {stream: cupy.cuda.Stream(non_blocking=True) for stream in {row[3] for row in rows}}
    pool = cupy.cuda.MemoryPool()
    taken = [replay(pool, rows, streams, work == "memset") for _ in range(passes)]
    later = taken[1:] or taken
    peak, reserved = requested_peak(rows), pool.total_bytes()  # The pool gives nothing back by itself.
    print(json.dumps({
        "trace": os.path.basename(path).split(".")[0],
        "allocator": "CuPy",
        "device": "cuda:0",
        "work": work,
        "operations": len(rows),
        "passes": passes,
        "nanosPerOperation": round(statistics.median(host for host, _ in later) / len(rows), 3),
        "requestedPeakBytes": peak,
        "reservedPeakBytes": reserved,
        "ratio": round(reserved / peak, 6),
        "wallMillis": round(statistics.median(wall for _, wall in later) / 1e6, 3),
        "driverCalls": None,
        "firstPassMillis": round(taken[0][1] / 1e6, 3),
    }, separators=(",", ":")))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *(int(passes) for passes in sys.argv[3:]))
