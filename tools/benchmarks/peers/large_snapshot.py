"""Writes a snapshot as PyTorch would have of a long training: FILE TRACE.csv EVENTS.

The program repeats until there are EVENTS entries, each with a stack of 110 frames, one of 20,000.
"""
import csv, pickle, random, sys

DEPTH, STACKS, BASE = 110, 20_000, 0x7F0000000000
out, trace, events = sys.argv[1], sys.argv[2], int(sys.argv[3])
drawn = random.Random(7)
frames = [{"filename": f"/home/me/module_{i // 40}.py", "line": 10 + i, "name": f"forward_{i}"} for i in range(4000)]
outer = frames[: DEPTH // 2]
stacks = [drawn.choices(frames, k=DEPTH - len(outer)) + outer for _ in range(STACKS)]
with open(trace) as file:
    rows = [row for row in csv.DictReader(file) if row["op"] in "af"]
history, micros, end = [], 0, BASE
idle, live = {}, {}  # Addresses by stream and size; blocks by id.


def note(action, address, size, stream, stack):
    history.append({"action": action, "addr": address, "size": size, "stream": stream, "time_us": micros,
                    "compile_context": "N/A", "user_metadata": "", "frames": list(stack)})


def free(block, stack):
    for action in ("free_requested", "free_completed"):
        note(action, *block, stack)
    idle.setdefault(block[1:], []).append(block[0])


while len(history) < events:
    for number, row in enumerate(rows):
        micros += drawn.randrange(3, 40)
        stack = stacks[number % STACKS]
        if row["op"] == "f":
            free(live.pop(row["id"]), stack)
            continue
        size, stream = int(row["bytes"]), int(row["stream"]) << 8
        former = idle.get((size, stream))
        if former:
            address = former.pop()
        else:
            address, end = end, end + (size + 511) // 512 * 512
        live[row["id"]] = address, size, stream
        note("alloc", address, size, stream, stack)
    for block in live.values():
        free(block, stacks[0])
    live.clear()
segment = {"device": 0, "address": BASE, "total_size": end - BASE, "stream": 0, "frames": [], "blocks": []}
with open(out, "wb") as file:
    pickle.dump({"segments": [segment], "device_traces": [history]}, file, protocol=4)
