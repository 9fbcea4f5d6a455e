"""Five races of two streams in PyTorch under its sanitizer, each also in a correct version; PlantedRaces of the suites has
the same ones for Cistern.

usage: torch_races.py   a line of JSON for each race on stdout, messages on stderr
"""
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

RACES = ["read_before_write_ended", "write_before_read_ended", "free_before_use_ended", "host_read_before_copy_ended",
         "kernel_of_its_own"]
FOUND = "CSAN detected"
DONE = "all work done"


def run(race, correct):
    import torch

    a, b = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(a):
        x = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()

    def fill():
        with torch.cuda.stream(a):
            x.fill_(1)

    def read():
        with torch.cuda.stream(b):
            return x * 2

    if race == "read_before_write_ended":
        fill()
        if correct:
            b.wait_stream(a)
        y = read()
    elif race == "write_before_read_ended":
        fill()
        b.wait_stream(a)
        y = read()
        if correct:
            a.wait_stream(b)
        fill()
    elif race == "free_before_use_ended":
        fill()
        b.wait_stream(a)
        y = read()
        if correct:
            x.record_stream(b)
        address = x.data_ptr()
        del x
        with torch.cuda.stream(a):
            z = torch.empty(1 << 20, device="cuda")
            z.fill_(2)
        print("same memory:", z.data_ptr() == address, file=sys.stderr)
    elif race == "host_read_before_copy_ended":
        host = torch.zeros(1 << 20, pin_memory=True)
        fill()
        with torch.cuda.stream(a):
            host.copy_(x, non_blocking=True)
        if correct:
            a.synchronize()
        print("read:", host.sum().item(), file=sys.stderr)
    else:
        import ctypes

        driver = ctypes.CDLL("libcuda.so.1")
        fill()
        if correct:
            b.wait_stream(a)
        status = driver.cuMemsetD8Async(ctypes.c_uint64(x.data_ptr()), ctypes.c_ubyte(1), ctypes.c_size_t(4 << 20),
                                        ctypes.c_void_p(b.cuda_stream))
        if status != 0:
            raise RuntimeError(f"cuMemsetD8Async ended with {status}")
    torch.cuda.synchronize()
    print(DONE, file=sys.stderr)


def is_reported(race, correct):
    """Whether the sanitizer reports the program; raises if the program fails for another reason."""
    version = "correct" if correct else "racy"
    process = subprocess.run([sys.executable, __file__, race, version], env={**os.environ, "TORCH_CUDA_SANITIZER": "1"},
                             capture_output=True, text=True, timeout=60)
    output = process.stdout + process.stderr
    print(f"--- {race}, {version}: ended with {process.returncode}\n{output}", file=sys.stderr)
    if FOUND not in output and not (process.returncode == 0 and DONE in output):
        raise RuntimeError(f"{version} ended with {process.returncode}: " + output.strip()[-300:])
    return FOUND in output


def row(race):
    row = {"race": race, "tool": "pytorch"}
    for correct in (True, False):
        try:
            row["correct_reported" if correct else "racy_reported"] = is_reported(race, correct)
        except Exception as failure:
            row["failed"] = str(failure)
    return row


if len(sys.argv) == 3:
    run(sys.argv[1], sys.argv[2] == "correct")
else:
    with ThreadPoolExecutor(len(RACES)) as pool:
        rows = list(pool.map(row, RACES))
    for each in rows:
        print(json.dumps(each))
    sys.exit(any("failed" in each for each in rows))
