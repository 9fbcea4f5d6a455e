"""Blocks of 1 GiB from PyTorch until one fails: how many fit, and what its error says.

usage: oom_peers.py            the rows as JSON on stdout, the message on stderr
"""
import json
import sys
import time

import torch

blocks = []
try:
    while True:
        begun = time.perf_counter()
        blocks.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))
except torch.OutOfMemoryError as full:
    millis = (time.perf_counter() - begun) * 1e3
    print(json.dumps({"allocator": "PyTorch " + torch.__version__, "row": "out of memory",
                      "blocks_of_gib": len(blocks), "millis": round(millis, 2)}))
    print(full, file=sys.stderr)
