"""PyTorch's MemPool beside Cistern's scopes: entering and leaving a pool, and a pair of allocations inside one.

usage: mempool_peers.py    (needs a GPU and PyTorch)
"""
import statistics
import time

import torch


def nanos(body, count, rounds=9):
    body(count // 10)
    taken = []
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        body(count)
        taken.append((time.perf_counter_ns() - begin) / count)
    return f"{statistics.median(taken):.0f} ns (lowest {min(taken):.0f}, highest {max(taken):.0f})"


def enter_and_leave(count):
    for _ in range(count):
        with torch.cuda.use_mem_pool(pool):
            pass


def raw_pair(count):
    allocate, delete = torch.cuda.caching_allocator_alloc, torch.cuda.caching_allocator_delete
    for _ in range(count):
        delete(allocate(4096, 0, stream))


def tensor_pair(count):
    for _ in range(count):
        torch.empty(4096, dtype=torch.uint8, device="cuda")


torch.cuda.init()
pool = torch.cuda.MemPool()
stream = torch.cuda.current_stream()
print("PyTorch", torch.__version__)
print("use_mem_pool enter and leave:", nanos(enter_and_leave, 2000))
print("torch.empty 4096 B, outside: ", nanos(tensor_pair, 20000))
with torch.cuda.use_mem_pool(pool):
    print("torch.empty 4096 B, in pool: ", nanos(tensor_pair, 20000))
    print("caching_allocator_alloc/delete 4096 B, in pool:", nanos(raw_pair, 20000))
