"""Out of memory in PyTorch: blocks of 1 GiB until one fails, and a sequence of OutOfMemorySequence: which are served.

usage: oom_peers.py [SEQUENCE]   the rows as JSON on stdout, messages on stderr
"""
import json
import sys
import time

import torch


def name():
    return "PyTorch " + torch.__version__


def allocate(count):
    return torch.empty(count, dtype=torch.uint8, device="cuda")


def fill():
    blocks = []
    try:
        while True:
            begun = time.perf_counter()
            blocks.append(allocate(1 << 30))
    except torch.OutOfMemoryError as full:
        millis = (time.perf_counter() - begun) * 1e3
        print(json.dumps({"allocator": name(), "row": "out of memory", "blocks_of_gib": len(blocks),
                          "millis": round(millis, 2)}))
        print(full, file=sys.stderr)


def sequence(file):
    live, refused, served, first = {}, [], 0, 0.0
    for line in open(file):
        fields = line.strip().split(",")
        if fields[0] == "f":
            live.pop(int(fields[1]), None)
            continue
        begun = time.perf_counter()
        try:
            live[int(fields[1])] = allocate(int(fields[2]))
            served += 1
        except torch.OutOfMemoryError:
            first = first or (time.perf_counter() - begun) * 1e3
            refused.append(int(fields[1]))
    print(json.dumps({"allocator": name(), "row": "sequence", "served": served, "refused": len(refused),
                      "millis_of_first_refusal": round(first, 2), "refused_ids": refused}))


fill()
torch.cuda.empty_cache()
if len(sys.argv) > 1:
    sequence(sys.argv[1])
