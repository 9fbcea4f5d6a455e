"""The jobs of torch_jobs.py in turns: every allocator once for each job, then again, so that all of them meet the same moods of a
host. Prints the lines of torch_jobs.py, each with the number of its run; what fails is a line too. Begins no job that would end
after the limit, as far as the last one of its kind tells; what was left out is told on standard error.
usage: torch_jobs_in_turns.py DISTRIBUTION [--jobs A,B] [--allocators A,B] [--runs 5] [--first-run 1] [--limit SECONDS]"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

JOBS = "gpt2_train,resnet_train,unet_train,llama_generate,vit_streams,bert_streams,gnn_sample,lora_finetune,speech_train,kv_serving"
TYPICAL_SECONDS = 30


def main():
    options = argparse.ArgumentParser()
    options.add_argument("distribution")
    options.add_argument("--jobs", default=JOBS)
    options.add_argument("--allocators", default="default,expandable,async,cistern")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--first-run", type=int, default=1)
    options.add_argument("--limit", type=float, default=540)
    given = options.parse_args()
    begin, took, left_out = time.monotonic(), {}, []
    for run in range(given.first_run, given.first_run + given.runs):
        for job in given.jobs.split(","):
            for conf in given.allocators.split(","):
                now = time.monotonic()
                if now - begin + took.get(job, TYPICAL_SECONDS) > given.limit:
                    left_out.append(f"{job} {conf} run {run}")
                    continue
                print(json.dumps({"run": run, **result(job, conf, given.distribution)}), flush=True)
                took[job] = time.monotonic() - now
    if left_out:
        print("left out for want of time:", "; ".join(left_out), file=sys.stderr)


def result(job, conf, distribution):
    script = pathlib.Path(__file__).with_name("torch_jobs.py")
    try:
        done = subprocess.run(
            [sys.executable, script, job, conf, distribution], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300
        )
    except subprocess.TimeoutExpired:
        return {"job": job, "conf": conf, "failure": "no end after 300 s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        return {"job": job, "conf": conf, "failure": (done.stdout + done.stderr)[-2000:]}
    return json.loads(lines[-1])


main()
