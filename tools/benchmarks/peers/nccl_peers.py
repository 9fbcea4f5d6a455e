"""PyTorch's all-reduce between two processes, timed as NcclBandwidth times: it reads lines "KIND BYTES ROUNDS" and answers
each with the microseconds of one all-reduce. KIND is plain; others are answered with -1.

usage: nccl_peers.py GPUS    (needs GPUs and PyTorch)
"""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

LARGEST = 1 << 30


def rank(number, count, requests, answers):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ.get("NCCL_PEERS_PORT", "29533"))
    torch.cuda.set_device(number)
    dist.init_process_group("nccl", rank=number, world_size=count)
    buffer = torch.zeros(LARGEST // 4, dtype=torch.float32, device="cuda")
    while (request := requests.get()) is not None:
        size, rounds = request
        part = buffer[: size // 4]
        for _ in range(rounds // 4 + 1):
            dist.all_reduce(part)
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        for _ in range(rounds):
            dist.all_reduce(part)
        torch.cuda.synchronize()
        answers.put((time.perf_counter_ns() - begin) / rounds / 1000)
    dist.destroy_process_group()


def main():
    count = int(sys.argv[1])
    context = multiprocessing.get_context("spawn")
    requests = [context.SimpleQueue() for _ in range(count)]
    answers = context.SimpleQueue()
    processes = [context.Process(target=rank, args=(i, count, requests[i], answers)) for i in range(count)]
    for process in processes:
        process.start()
    for line in sys.stdin:
        kind, size, rounds = line.split()
        if kind != "plain":
            print(-1, flush=True)
            continue
        for queue in requests:
            queue.put((int(size), int(rounds)))
        print(max(answers.get() for _ in range(count)), flush=True)
    for queue in requests:
        queue.put(None)
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
