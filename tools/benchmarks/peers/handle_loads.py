"""How the threads of PyTorch programs live, and which handles of cuBLAS they create and use: loads with several threads, then the
jobs of torch_jobs.py, each in a process of its own behind handle_trace.c. Prints what that saw, each line with its load and run,
and then a line with the sums. Handles are of the process that computes; workers that load data are others, and have none.
usage: handle_loads.py BUILD [--runs 3] [--limit SECONDS] [--loads A,B]     BUILD contains libhandle_trace.so
       handle_loads.py sums FILE                                             the sums once more, from lines that were kept"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

JOBS = "gpt2_train,resnet_train,unet_train,llama_generate,vit_streams,bert_streams,gnn_sample,lora_finetune,speech_train,kv_serving"
NO_SUCH_MACHINE = 77


def network(torch, device):
    layers = [layer for _ in range(6) for layer in (torch.nn.Linear(1024, 1024), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers, torch.nn.Linear(1024, 1)).to(device)


def data_loaders(torch):
    """Training whose batches come from two worker processes and a thread that pins them; three epochs."""
    rows = torch.utils.data.TensorDataset(torch.randn(20000, 1024), torch.randn(20000, 1))
    model = network(torch, "cuda")
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(3):
        for x, y in torch.utils.data.DataLoader(rows, batch_size=256, shuffle=True, num_workers=2, pin_memory=True):
            loss = (model(x.cuda(non_blocking=True)) - y.cuda(non_blocking=True)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


def two_devices(torch):
    """Autograd over layers on two devices, which has a thread for each."""
    if torch.cuda.device_count() < 2:
        sys.exit(NO_SUCH_MACHINE)
    first, second = network(torch, "cuda:0"), network(torch, "cuda:1")
    for _ in range(100):
        x = torch.randn(256, 1024, device="cuda:0")
        (first(x).sum().to("cuda:1") + second(x.to("cuda:1")).sum()).backward()


def autograd_threads(torch):
    """Training from eight threads of one pool, each with a model; their backward passes run on autograd's thread."""
    from concurrent.futures import ThreadPoolExecutor

    def train(_):
        model = network(torch, "cuda")
        for _ in range(20):
            model(torch.randn(256, 1024, device="cuda")).sum().backward()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(train, range(32)))


def request(torch, model):
    with torch.no_grad():
        return float(model(torch.randn(16, 1024, device="cuda")).sum())


def pool_server(torch):
    """A server that answers from a pool of sixteen threads."""
    from concurrent.futures import ThreadPoolExecutor

    model = network(torch, "cuda")
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: request(torch, model), range(4000)))


def bursty_server(torch):
    """The same, but the pool ends between bursts."""
    from concurrent.futures import ThreadPoolExecutor

    model = network(torch, "cuda")
    for _ in range(20):
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda _: request(torch, model), range(200)))
        time.sleep(0.1)


def thread_server(torch):
    """Python's own HTTP server, which starts a thread for each connection; eight clients in this process."""
    import http.server
    import threading
    import urllib.request

    model = network(torch, "cuda")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            answer = str(request(torch, model)).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"

    def client():
        for _ in range(100):
            urllib.request.urlopen(address).read()

    clients = [threading.Thread(target=client) for _ in range(8)]
    [each.start() for each in clients]
    [each.join() for each in clients]
    server.shutdown()


LOADS = [data_loaders, two_devices, autograd_threads, pool_server, bursty_server, thread_server]


def child(name):
    import torch

    torch.manual_seed(0)
    globals()[name](torch)
    torch.cuda.synchronize()


def traced(build, command, limit):
    """Returns the lines of the process that used handles most, and what went wrong or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "LD_PRELOAD": str(pathlib.Path(build, "libhandle_trace.so").resolve()),
            "HANDLE_TRACE": str(pathlib.Path(folder, "trace")),
        }
        try:
            done = subprocess.run(
                [sys.executable, *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            return [], f"no end after {limit:.0f} s"
        if done.returncode == NO_SUCH_MACHINE:
            return [], "not on this machine"
        if done.returncode:
            return [], (done.stdout + done.stderr)[-1000:]
        processes = [
            [json.loads(line) for line in file.read_text().splitlines()] for file in pathlib.Path(folder).glob("trace.*")
        ]
    uses = [sum(line.get("streams", 0) for line in lines) for lines in processes]
    if not any(uses):
        return [], "no handle was seen"
    return processes[uses.index(max(uses))], None


def sums(lines):
    """What one process did: times in milliseconds, creations in microseconds."""
    threads = {line["thread"]: line for line in lines if line["what"] == "thread"}
    uses = [line for line in lines if line["what"] == "use"]
    created = [line for line in lines if line["what"] == "create" and line["status"] == 0]
    with_handle = {use["thread"] for use in uses}
    by_handle = {}
    for use in uses:
        by_handle.setdefault(use["handle"], set()).add(use["thread"])
    life = lambda thread: (thread["end"] - thread["begin"]) / 1e6
    lives = [life(threads[each]) for each in with_handle if threads[each]["ended"]]
    nanos = sorted(line["nanos"] for line in created)
    return {
        "threads": len(threads),
        "threadsEnded": sum(thread["ended"] for thread in threads.values()),
        "threadsWithHandle": len(with_handle),
        "ofThemEnded": len(lives),
        "lifeMedianMs": round(statistics.median(lives), 1) if lives else None,
        "lifeShortestMs": round(min(lives), 1) if lives else None,
        "lifeLongestMs": round(max(lives), 1) if lives else None,
        "processMs": round(max(life(thread) for thread in threads.values()), 1),
        "created": len(created),
        "destroyed": sum(line["what"] == "destroy" for line in lines),
        "servedAnotherThread": sum(len(users) > 1 for users in by_handle.values()),
        "handedOn": sum(len(users) - 1 for users in by_handle.values()),
        "streamsSet": sum(use["streams"] for use in uses),
        "workspacesSet": sum(use["workspaces"] for use in uses),
        "createFirstUs": round(min(created, key=lambda line: line["at"])["nanos"] / 1e3, 1) if created else None,
        "createMedianUs": round(statistics.median(nanos) / 1e3, 1) if nanos else None,
        "createLongestUs": round(nanos[-1] / 1e3, 1) if nanos else None,
    }


def main():
    if sys.argv[1] == "child":
        return child(sys.argv[2])
    if sys.argv[1] == "sums":
        runs = {}
        for line in map(json.loads, pathlib.Path(sys.argv[2]).read_text().splitlines()):
            if line["what"] in ("thread", "use", "create", "destroy"):
                runs.setdefault((line["load"], line["run"]), []).append(line)
        for (load, run), lines in runs.items():
            print(json.dumps({"what": "sums", "load": load, "run": run, **sums(lines)}))
        return None
    import argparse

    options = argparse.ArgumentParser()
    options.add_argument("build")
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--limit", type=float, default=170)
    options.add_argument("--loads", default=",".join([load.__name__ for load in LOADS] + JOBS.split(",")))
    given = options.parse_args()
    end = time.monotonic() + given.limit
    for run in range(1, given.runs + 1):
        for load in given.loads.split(","):
            job = load in JOBS.split(",")
            left = end - time.monotonic()
            if left < 10:
                continue
            here = pathlib.Path(__file__)
            command = [here.with_name("torch_jobs.py"), load, "default", "-"] if job else [here, "child", load]
            lines, failure = traced(given.build, command, left)
            head = {"load": load, "run": run}
            if failure:
                print(json.dumps({"what": "failure", **head, "failure": failure}), flush=True)
                continue
            for line in lines:
                print(json.dumps({**head, **line}))
            print(json.dumps({"what": "sums", **head, **sums(lines)}), flush=True)
    return None


main()
