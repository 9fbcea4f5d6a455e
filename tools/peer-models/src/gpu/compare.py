"""Compares what check.py measured with what `cistern fit` says. Needs no GPU.

usage: compare.py OUT.tar.gz TRACE.csv.gz ...        in a clone; exits with 1 if reserved bytes differ by more than 1 %
"""

import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

CISTERN = pathlib.Path(__file__).resolve().parents[4] / "cistern"


def fit(file, *options):
    run = subprocess.run([CISTERN, "fit", file, "--format", "json", *options], capture_output=True, text=True)
    assert run.returncode in (0, 3), run.stderr
    return {each["allocator"]: each for each in json.loads(run.stdout)[0]["allocators"]}


def main():
    archive, traces = sys.argv[1], {pathlib.Path(each).name.removesuffix(".csv.gz"): each for each in sys.argv[2:]}
    with tempfile.TemporaryDirectory() as name:
        tarfile.open(archive).extractall(name, filter="data")
        folder = pathlib.Path(name)
        results = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
        answers, worst, agree, asked = {}, 0.0, 0, 0
        both = ["--allocator", "pytorch-native", "--allocator", "pytorch-expandable", "--allocator", "caching"]
        for each in results:
            kind, model = each.get("kind"), "pytorch-" + each.get("allocator", "")
            if kind in ("reserved", "smallest", "room"):
                if each["trace"] not in answers:
                    answers[each["trace"]] = fit(traces[each["trace"]], *both)
                answer = answers[each["trace"]][model]
            if kind == "reserved" and each["passes"] == 1:
                off = 100 * (answer["reservedPeakBytes"] / each["reservedPeakBytes"] - 1)
                worst = max(worst, abs(off))
                print(f"{each['trace']:16} {model:20} reserved {each['reservedPeakBytes']:>13,}  model {off:+.3f} %")
            elif kind == "smallest":
                print(f"{each['trace']:16} {model:20} smallest {each['smallestBytes'] >> 20:>7,} MiB  model"
                      f" {answer['smallestCapacityBytes'] >> 20:>7,} MiB")
            elif kind == "room":
                asked += 1
                agree += (each["roomBytes"] >= answer["smallestCapacityBytes"]) == each["completed"]
            elif kind == "train-room":
                name = "caching" if each["allocator"] == "cistern" else model
                said = fit(folder / "train.pickle.gz", *both, "--capacity", str(each["roomBytes"]))[name]["fits"]
                asked += 1
                agree += said == each["completed"]
                print(f"train.py in {each['roomMiB']:>6} MiB with {name:20} {'completes' if each['completed'] else 'fails':9}"
                      f"  fit: {'completes' if said else 'fails'}")
        print(f"worst difference of reserved bytes: {worst:.3f} %; fit says the same in {agree} of {asked} rooms")
        sys.exit(worst > 1)


main()
