"""Proves cistern_torch with a real PyTorch on a real GPU: one line for each check, each in a process of its own.

usage: proof.py DISTRIBUTION [CHECK ...]        exits with 0 if all hold
"""

import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time

MIB = 1 << 20


def started(**how):
    import cistern_torch
    import torch

    cistern_torch.enable(**how)
    return torch, cistern_torch


def raised(type_, call, *words):
    try:
        call()
    except type_ as error:
        for word in words:
            assert word in str(error), f"'{word}' is not in: {error}"
        return f"{type(error).__module__}.{type(error).__name__}: {str(error).splitlines()[0][:230]}"
    raise AssertionError(f"no {type_.__name__} was raised")


def losses(torch):
    """A small transformer whose results are the same in each run, if the memory is right."""
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    model = torch.nn.Sequential(torch.nn.Embedding(1000, 256), torch.nn.TransformerEncoder(layer, 4), torch.nn.Linear(256, 1000))
    model, total = model.cuda(), []
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for step in range(60):
        x = torch.randint(0, 1000, (4 + step % 7, 32 + 16 * (step % 5)), device="cuda")
        loss = torch.nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        total.append(loss.item())
    return total


def losses_of_pytorch():
    import torch

    return repr(losses(torch))


def losses_of_cistern(allocator):
    torch, cistern_torch = started(allocator=allocator)
    return repr(losses(torch))


def same_losses():
    """Training gives the losses that it gives with PyTorch's own allocator, bit by bit."""
    expected = child("losses_of_pytorch")
    for allocator in ("caching", "async", "caching:reuse=never"):
        assert child("losses_of_cistern", allocator) == expected, allocator
    first, last = eval(expected)[0], eval(expected)[-1]
    assert last < first
    return f"60 steps with caching, async and caching:reuse=never, loss {first:.6f} to {last:.6f}"


def record_stream():
    """A block that another stream reads is neither overwritten nor handed out while it does."""
    torch, cistern_torch = started()
    side, wrong, again = torch.cuda.Stream(), 0, 0
    for turn in range(50):
        x = torch.full((4 * MIB,), float(turn), device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
            copy = x.clone()
        x.record_stream(side)
        address = x.data_ptr()
        del x
        y = torch.full((4 * MIB,), -1.0, device="cuda")
        again += y.data_ptr() == address
        side.synchronize()
        wrong += int((copy != turn).sum())
        del y
    assert wrong == 0, f"{wrong} elements were overwritten"
    return f"50 turns, no element was overwritten; the block itself came again {again} times"


def empty_cache():
    """torch.cuda.empty_cache() gives idle memory back to the driver."""
    torch, cistern_torch = started()
    torch.ones(1, device="cuda")
    before = torch.cuda.mem_get_info()[0]
    x = torch.empty(2048 * MIB, dtype=torch.uint8, device="cuda")
    taken = before - torch.cuda.mem_get_info()[0]
    del x
    kept = before - torch.cuda.mem_get_info()[0]
    torch.cuda.empty_cache()
    left = before - torch.cuda.mem_get_info()[0]
    assert taken >= 2048 * MIB and kept >= 2048 * MIB and left < 64 * MIB, (taken, kept, left)
    return f"{taken // MIB} MiB taken, {kept // MIB} kept after the tensor was gone, {left // MIB} after empty_cache"


def memory_fraction():
    """torch.cuda.set_per_process_memory_fraction limits what is asked for at once."""
    torch, cistern_torch = started()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.ones(1, device="cuda")
    torch.cuda.set_per_process_memory_fraction(0.1)
    torch.empty(int(total * 0.05), dtype=torch.uint8, device="cuda")
    text = raised(
        torch.OutOfMemoryError, lambda: torch.empty(int(total * 0.11), dtype=torch.uint8, device="cuda"), "limit of"
    )
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.empty(int(total * 0.11), dtype=torch.uint8, device="cuda")
    return text


def out_of_memory():
    """A lack of memory is torch.OutOfMemoryError with Cistern's words, and the next request is served."""
    torch, cistern_torch = started()
    kept = torch.ones(100 * MIB, dtype=torch.uint8, device="cuda")
    text = raised(
        torch.OutOfMemoryError,
        lambda: torch.empty(1 << 40, dtype=torch.uint8, device="cuda"),
        "CUDA out of memory",
        "Cistern",
        "largest free block",
    )
    assert int(torch.ones(1000, device="cuda").sum()) == 1000 and int(kept.sum()) == 100 * MIB
    assert issubclass(torch.cuda.OutOfMemoryError, RuntimeError)
    return text


def fork_before_use():
    """A forked child of a process that has enabled Cistern is refused, without a hang."""
    torch, cistern_torch = started()
    return forked(lambda: raised(RuntimeError, lambda: torch.ones(1, device="cuda"), "fork", "spawn"))


def fork_after_use():
    """A forked child of a process that has used the GPU is refused."""
    torch, cistern_torch = started()
    x = torch.ones(1, device="cuda")
    text = forked(lambda: raised(RuntimeError, lambda: torch.ones(1, device="cuda"), "fork"))
    assert float(x + 1) == 2.0
    return text


def forked(call):
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            os.write(writer, call().encode())
        except BaseException as error:
            os.write(writer, f"FAILED {error!r}".encode())
        os._exit(0)
    os.close(writer)
    text = os.fdopen(reader).read()
    os.wait()
    assert text and not text.startswith("FAILED"), text
    return text


def workers():
    """Forked workers of a DataLoader, which never touch the GPU, go on as before."""
    torch, cistern_torch = started()
    model = torch.nn.Linear(64, 1).cuda()
    rows = torch.utils.data.TensorDataset(torch.randn(512, 64))
    loader = torch.utils.data.DataLoader(rows, batch_size=32, num_workers=2, pin_memory=True)
    batches = sum(1 for epoch in range(2) for (x,) in loader if model(x.cuda(non_blocking=True)).shape == (32, 1))
    assert batches == 32
    return "2 epochs of 16 batches from 2 workers"


def statistics():
    """memory_stats has what PyTorch asked for, by PyTorch's names; a summary has it for people."""
    torch, cistern_torch = started()
    torch.ones(1, device="cuda")
    before = cistern_torch.memory_stats()["requested_bytes.all.current"]
    x = torch.empty(300 * MIB, dtype=torch.uint8, device="cuda")
    stats = cistern_torch.memory_stats("cuda:0")
    assert stats["requested_bytes.all.current"] - before == 300 * MIB, stats
    assert stats["reserved_bytes.all.current"] >= 300 * MIB
    del x
    assert cistern_torch.memory_stats(0)["requested_bytes.all.current"] == before
    assert cistern_torch.memory_stats(0)["requested_bytes.all.peak"] >= before + 300 * MIB
    cistern_torch.reset_peak_memory_stats()
    assert cistern_torch.memory_stats(0)["requested_bytes.all.peak"] == before
    assert "caching" in cistern_torch.memory_summary()
    return f"{len(stats)} figures"


def snapshots():
    """Snapshots are read by PyTorch's own viewer, with the history."""
    torch, cistern_torch = started()
    from torch.cuda import _memory_viz

    cistern_torch.record_history()
    kept = [torch.empty(n * MIB, dtype=torch.uint8, device="cuda") for n in (1, 3, 30)]
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "snapshot.pickle")
        cistern_torch.snapshot(file)
        with open(file, "rb") as opened:
            snapshot = pickle.load(opened)
        cistern_torch.snapshot(pathlib.Path(folder, "snapshot.json"))
        assert pathlib.Path(folder, "snapshot.json").stat().st_size > 100
    live = sorted(b["requested_size"] for s in snapshot["segments"] for b in s["blocks"] if b["state"] == "active_allocated")
    assert live == [MIB, 3 * MIB, 30 * MIB], live
    page = _memory_viz.trace_plot(snapshot) if hasattr(_memory_viz, "trace_plot") else ""
    text = _memory_viz.segsum(snapshot)
    del kept
    return f"{len(snapshot['segments'])} segments, {len(snapshot['device_traces'][0])} events, a page of {len(page)} and a text of {len(text)} characters"


def graphs():
    """torch.cuda.graph: replays give what eager work gives; its memory is kept for it, shared by a pool, and comes back."""
    torch, cistern_torch = started()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512)).cuda()
    x = torch.randn(256, 512, device="cuda")
    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.no_grad(), torch.cuda.stream(warm):
        model(x)
    torch.cuda.current_stream().wait_stream(warm)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = cistern_torch.memory_stats()["reserved_bytes.all.current"]
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.no_grad():
        with torch.cuda.graph(first):
            y = model(x)
        with torch.cuda.graph(second, pool=first.pool()):
            z = model(y)
    for turn in range(20):
        x.copy_(torch.randn_like(x))
        noise = [torch.full((1 << n,), -9.0, device="cuda") for n in range(10, 22)]
        first.replay()
        second.replay()
        with torch.no_grad():
            assert torch.allclose(y, model(x), atol=1e-5) and torch.allclose(z, model(model(x)), atol=1e-5), turn
        del noise
    during = cistern_torch.memory_stats()["reserved_bytes.all.current"]
    del first, second, y, z
    torch.cuda.synchronize()
    torch._C._cuda_clearCublasWorkspaces()  # allocated in the captures, and PyTorch keeps them
    torch.cuda.empty_cache()
    after = cistern_torch.memory_stats()["reserved_bytes.all.current"]
    assert during > before >= after - 8 * MIB, (before, during, after)
    return f"two graphs of one pool, 20 replays each; reserved {before // MIB} MiB before, {during // MIB} with, {after // MIB} after"


def graphed_callables():
    """torch.cuda.make_graphed_callables trains as eager code does."""
    torch, cistern_torch = started()
    results = []
    for graphed in (False, True):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.Tanh(), torch.nn.Linear(512, 10)).cuda()
        x, y = torch.randn(64, 256, device="cuda"), torch.randint(0, 10, (64,), device="cuda")
        run = torch.cuda.make_graphed_callables(model, (x.clone(),)) if graphed else model
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(20):
            loss = torch.nn.functional.cross_entropy(run(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)  # else PyTorch adds a replay to the very buffer that it wrote
        results.append(loss.item())
    assert abs(results[0] - results[1]) < 1e-4, results
    return f"loss after 20 steps: eager {results[0]:.6f}, graphed {results[1]:.6f}"


def out_of_memory_in_a_graph():
    """A lack of memory in a capture is an error, and the next capture works."""
    torch, cistern_torch = started()
    torch.ones(1, device="cuda")

    def capture(size):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x = torch.zeros(size, dtype=torch.uint8, device="cuda")
        graph.replay()
        return int(x.sum())

    text = raised(RuntimeError, lambda: capture(1 << 40), "")
    assert capture(MIB) == 0
    assert int(torch.ones(10, device="cuda").sum()) == 10
    return text


def pools_refused():
    """torch.cuda.MemPool is refused in words."""
    torch, cistern_torch = started()
    torch.ones(1, device="cuda")

    def use():
        with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
            torch.ones(1, device="cuda")

    return raised(RuntimeError, use)


def figures_of_pytorch():
    """What PyTorch says itself where it has no hook."""
    torch, cistern_torch = started()
    torch.ones(1, device="cuda")
    texts = [raised(RuntimeError, call) for call in (torch.cuda.memory_allocated, torch.cuda.memory_snapshot)]
    return "; ".join(texts)


def too_late():
    """enable() after PyTorch has used the GPU is refused."""
    import cistern_torch
    import torch

    torch.ones(1, device="cuda")
    return raised(cistern_torch.CisternError, cistern_torch.enable, "has already used the GPU")


def wrong_allocator():
    """A wrong spec is refused with the names that there are, and a right one is taken then."""
    import cistern_torch

    text = raised(cistern_torch.CisternError, lambda: cistern_torch.enable("cachin"), "caching")
    torch, _ = started(allocator="caching")
    assert float(torch.ones(3, device="cuda").sum()) == 3
    return text


def interrupt():
    """Ctrl-C is Python's as before."""
    torch, cistern_torch = started()
    torch.ones(1, device="cuda")
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        time.sleep(20)
    except KeyboardInterrupt:
        return "KeyboardInterrupt"
    raise AssertionError("no KeyboardInterrupt")


def many_threads():
    """Threads with streams of their own allocate and free at once."""
    torch, cistern_torch = started()
    failures = []

    def work(seed):
        stream, sizes = torch.cuda.Stream(), [1 << (10 + (seed + i) % 14) for i in range(300)]
        with torch.cuda.stream(stream):
            for i, size in enumerate(sizes):
                x = torch.full((size,), float(i), device="cuda")
                if i % 50 == 0 and not bool((x == i).all()):
                    failures.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    torch.cuda.synchronize()
    stats = cistern_torch.memory_stats()
    assert not failures and stats["allocation.all.allocated"] >= 2400, failures
    return f"8 threads, {stats['allocation.all.allocated']} allocations"


def cost_of(conf):
    import torch

    if conf == "cistern":
        started()
    torch.empty(4096, device="cuda")
    rounds = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(20000):
            torch.empty(4096, device="cuda")
        rounds.append((time.perf_counter() - begin) / 20000 * 1e9)
    return f"{sorted(rounds)[2]:.0f}"


def cost():
    """For information: a tensor made and dropped."""
    return f"torch.empty(4096): {child('cost_of', 'cistern')} ns with Cistern, {child('cost_of', 'own')} ns with PyTorch's own"


def example():
    """The example of the distribution runs."""
    script = pathlib.Path(os.environ["PROOF_HOME"], "python", "train_with_cistern.py").resolve()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=folder, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip().splitlines()[-1]


CHECKS = [
    same_losses, record_stream, empty_cache, memory_fraction, out_of_memory, fork_before_use, fork_after_use, workers, statistics,
    snapshots, graphs, graphed_callables, out_of_memory_in_a_graph, pools_refused, figures_of_pytorch, too_late, wrong_allocator,
    interrupt, many_threads, example, cost,
]  # fmt: skip


def child(name, *arguments):
    """Runs a function in a process of its own, and returns what it returns."""
    done = subprocess.run(
        [sys.executable, __file__, "--run", name, *arguments], capture_output=True, text=True, timeout=150
    )
    assert done.returncode == 0, f"exit {done.returncode}: {done.stdout[-1500:]}{done.stderr[-3000:]}"
    return done.stdout.split("RESULT ", 1)[1].strip()


def main(home, names):
    os.environ["PROOF_HOME"] = home
    os.environ["PYTHONPATH"] = str(pathlib.Path(home, "python").resolve())
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    failed = 0
    for check in CHECKS:
        if names and check.__name__ not in names:
            continue
        begin = time.perf_counter()
        try:
            text = "ok      " + check.__name__ + ": " + " ".join(child(check.__name__).split())
        except (AssertionError, subprocess.TimeoutExpired) as error:
            failed += 1
            text = f"FAILED  {check.__name__}: {error}"
        print(f"{text}  ({time.perf_counter() - begin:.1f} s)", flush=True)
    print(f"{failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == "--run":
        print("RESULT", globals()[sys.argv[2]](*sys.argv[3:]), flush=True)
    else:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
