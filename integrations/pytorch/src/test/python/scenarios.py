"""What a Python program does with cistern_torch, on the simulated GPU and a torch that only plugs in. usage: scenarios.py NAME"""

import ctypes
import json
import os
import sys
import threading

import cistern_torch
import torch
from cistern_torch import _library

MIB = 1 << 20


def malloc(size):
    return torch.current.malloc(size, 0, None)


def free(block, size):
    torch.current.free(block, size, 0, None)


def stat(name):
    return cistern_torch.memory_stats(0)[name]


def refused(call, *arguments, **named):
    try:
        call(*arguments, **named)
        print("not refused")
    except cistern_torch.CisternError as error:
        print(error)


def allocates():
    print(cistern_torch.is_enabled())
    cistern_torch.enable("caching", page_size="2MiB")
    cistern_torch.enable("caching", page_size="2MiB")
    blocks = [malloc(size) for size in (1, 4096, 3 * MIB, 0)]
    print(cistern_torch.is_enabled(), [block is not None and block % 256 == 0 for block in blocks])
    print(stat("allocation.all.current"), stat("requested_bytes.all.current"), stat("reserved_bytes.all.current") > 0)
    for block, size in zip(blocks, (1, 4096, 3 * MIB, 0)):
        free(block, size)
    torch.cuda.empty_cache()
    print(stat("allocation.all.current"), stat("allocation.all.freed"), stat("reserved_bytes.all.current"))
    print("caching:page_size=2MiB, device 0" in cistern_torch.memory_summary(0))


def threads():
    cistern_torch.enable()
    failures = []

    def work():
        for turn in range(500):
            block = malloc(4096)
            if block is None:
                failures.append(_library.error())
            free(block, 4096)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    print(failures, stat("allocation.all.allocated"), stat("allocation.all.freed"))


def fraction():
    cistern_torch.enable(settings={"simulated.capacity": "1GiB"})
    kept = malloc(300 * MIB)
    torch.cuda.set_per_process_memory_fraction(0.5, 0)
    print(malloc(300 * MIB))
    print(_library.error())
    free(kept, 300 * MIB)
    print(malloc(300 * MIB) is not None)


def out_of_memory():
    cistern_torch.enable(settings={"simulated.capacity": "1GiB"})
    print(malloc(2 << 30))
    print(_library.error())
    print(malloc(MIB) is not None)


def streams():
    cistern_torch.enable()
    block = malloc(MIB)
    record = [ctypes.c_void_p, ctypes.c_void_p]
    torch.call("set_record_stream_fn", record, block, 1)
    torch.call("set_record_stream_fn", record, 12345, 1)
    print(repr(_library.error()))
    free(block, MIB)
    free(block, MIB)
    print(stat("allocation.all.freed"))


def snapshots(folder):
    cistern_torch.enable()
    cistern_torch.record_history()
    kept = malloc(3 * MIB)
    cistern_torch.snapshot(os.path.join(folder, "a snapshot.json"))
    cistern_torch.snapshot(os.path.join(folder, "snapshot.pickle"))
    cistern_torch.record_history(False)
    with open(os.path.join(folder, "a snapshot.json")) as file:
        written = json.load(file)
    import pickle

    with open(os.path.join(folder, "snapshot.pickle"), "rb") as file:
        pickled = pickle.load(file)
    live = [block for segment in pickled["segments"] for block in segment["blocks"] if block["state"] == "active_allocated"]
    print(len(written["segments"]) > 0, [block["requested_size"] for block in live], len(pickled["device_traces"][0]) > 0)
    refused(cistern_torch.snapshot, os.path.join(folder, "none", "x.json"))
    free(kept, 3 * MIB)


def peaks():
    cistern_torch.enable()
    free(malloc(8 * MIB), 8 * MIB)
    before = stat("requested_bytes.all.peak")
    cistern_torch.reset_peak_memory_stats(0)
    print(before, stat("requested_bytes.all.peak"))


def forks():
    cistern_torch.enable()
    block = malloc(MIB)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        free(block, MIB)
        print(malloc(MIB), cistern_torch.is_enabled(), torch.cuda._is_in_bad_fork())
        refused(cistern_torch.enable)
        refused(cistern_torch.memory_stats, 0)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
    print(stat("allocation.all.current"), torch.cuda._is_in_bad_fork())


def refusals():
    refused(cistern_torch.memory_stats, 0)
    refused(cistern_torch.enable, "cachin")
    refused(cistern_torch.enable, "caching", pagesize="2MiB")
    refused(cistern_torch.enable, settings={"limt": "8GiB"})
    refused(cistern_torch.enable, settings={"limit": "8GiB"})
    refused(cistern_torch.enable, settings={"limit": "8GiB\nx"})
    torch.initialized = True
    refused(cistern_torch.enable)
    torch.initialized = False
    torch.without.add("set_record_stream_fn")
    refused(cistern_torch.enable)
    torch.without.clear()
    cistern_torch.enable("caching")
    refused(cistern_torch.enable, "async")
    print(malloc(1) is not None)


def without_cuda():
    del torch._C._cuda_customAllocator
    refused(cistern_torch.enable)


def starts():
    refused(cistern_torch.enable)


def configured(allocator=None, option=None):
    cistern_torch.enable(allocator, **({} if option is None else {option: 1}))
    print(malloc(MIB) is not None, cistern_torch.memory_summary(0).splitlines()[0].strip())


def by_hand():
    """Without the package: the first allocation starts Cistern as configured."""
    torch.change_current_allocator(
        torch.CUDAPluggableAllocator(str(_library.path()), "cistern_malloc", "cistern_free")
    )
    block = malloc(MIB)
    print(block is not None, _library.command("summary 0").splitlines()[0].strip())


globals()[sys.argv[1]](*sys.argv[2:])
