"""PyTorch with Cistern as its allocator: a JVM in the Python process. Prints a line of JSON.

usage: cistern_in_torch.py LIBCISTERN.so
Environment: CISTERN_JVM, CISTERN_JVM_CLASSPATH, CISTERN_JVM_OPTIONS as in examples/src/main/c/cistern_host.c.
"""
import ctypes
import json
import os
import sys
import time

import torch

library = sys.argv[1]
allocator = torch.cuda.memory.CUDAPluggableAllocator(library, "cistern_malloc", "cistern_free")
torch.cuda.memory.change_current_allocator(allocator)

begin = time.perf_counter()
first = torch.ones(1 << 20, device="cuda")
start_millis = (time.perf_counter() - begin) * 1000

model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(256, 512, device="cuda"), torch.randint(0, 10, (256,), device="cuda")
losses = []
for _ in range(50):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
torch.cuda.synchronize()

begin = time.perf_counter()
for _ in range(20000):
    torch.empty(4096, device="cuda")
pair_nanos = (time.perf_counter() - begin) / 20000 * 1e9

counts = (ctypes.c_long * 3)()
ctypes.CDLL(library).cistern_counts(0, counts)
print(json.dumps({"startMillis": start_millis, "torchEmptyNanos": pair_nanos, "firstLoss": losses[0], "lastLoss": losses[-1],
                  "ones": first.sum().item(), "allocations": counts[0], "frees": counts[1], "bytes": counts[2]}), flush=True)
os._exit(0 if losses[-1] < losses[0] and first.sum().item() == 1 << 20 and counts[0] > 20000 else 1)
