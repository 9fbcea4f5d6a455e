"""Counts the refusals that a perfect placement would not have made: at which the live blocks and the request together
had room in what the process could have of the device.

usage: refused_with_room.py CAPACITY_BYTES SEQUENCES ROWS   the rows with that count as JSON on stdout

SEQUENCES is a folder with the sequence of each seed, N.csv, as OutOfMemorySequence writes it; ROWS is a file of JSON lines
with seed and refused_ids, as OutOfMemorySequence and oom_peers.py print them. A row of a perfect placement, which
serves whatever has room in whole slots of 2 MiB, is added for each seed.
"""
import json
import sys

SLOT = 2 << 20


def operations(file):
    for line in open(file):
        fields = line.strip().split(",")
        yield fields[0], int(fields[1]), int(fields[2]) if len(fields) > 2 else 0


def with_room(capacity, file, refused):
    live, count = {}, 0
    for what, number, byte_size in operations(file):
        if what == "f":
            live.pop(number, None)
        elif number not in refused:
            live[number] = byte_size
        elif sum(live.values()) + byte_size <= capacity:
            count += 1
    return count


def perfect(capacity, file):
    live, refused = {}, []
    for what, number, byte_size in operations(file):
        slots = -(-byte_size // SLOT) * SLOT
        if what == "f":
            live.pop(number, None)
        elif sum(live.values()) + slots <= capacity:
            live[number] = slots
        else:
            refused.append(number)
    return refused


def main(capacity, folder, rows):
    seeds = set()
    for line in open(rows):
        row = json.loads(line)
        seeds.add(row["seed"])
        row["refused_with_room"] = with_room(capacity, f"{folder}/{row['seed']}.csv", set(row["refused_ids"]))
        print(json.dumps(row))
    for seed in sorted(seeds):
        file = f"{folder}/{seed}.csv"
        refused = perfect(capacity, file)
        print(json.dumps({"allocator": "perfect placement, computed", "seed": seed, "refused": len(refused),
                          "refused_ids": refused, "refused_with_room": with_room(capacity, file, set(refused))}))


main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
