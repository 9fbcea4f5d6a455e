// What stands out, in sentences: computed from the data alone.

/** Findings, the gravest first: {grade: "bad" | "warn" | "note", title, text, advice, where: a section's id}. */
function findingsOf(run) {
  const grades = ["bad", "warn", "note"];
  const unused = [...strandedStreams(run), ...fragmentation(run), ...waitingBlocks(run)];
  return [...refusals(run), ...leaks(run), ...unused, ...churn(run), ...(unused.length > 0 ? [] : idleCaches(run)),
    ...incompleteHistory(run)].sort((a, b) => grades.indexOf(a.grade) - grades.indexOf(b.grade));
}

function refusals(run) {
  const marks = run.history ? run.history.marks.filter((mark) => mark.event.event === "outOfMemory") : [];
  const report = run.outOfMemory;
  if (!report && marks.length === 0) {
    return [];
  }
  const last = report || marks[marks.length - 1].event;
  const times = marks.length > 1 ? " " + countText(marks.length) + " requests were refused in the recording." : "";
  const holders = report && report.allocators && report.allocators.length > 0
    ? " At that time " + report.allocators.slice(0, 2).map((each) => (each.pool || each.name) + " held "
      + bytesText(each.reservedBytes ?? each.requestedBytes) + ", of which " + bytesText(each.requestedBytes)
      + " were live").join("; ") + "."
    : run.isOfRefusal ? " At that time " + bytesText(run.reservedBytes) + " were reserved, of which "
      + bytesText(run.requestedBytes) + " were live; the largest idle piece was " + bytesText(idlePieces(run)[0] ?? 0)
      + "." : "";
  const others = sum((report && report.processes) || [], (each) => each.byteSize || 0);
  return [{ grade: "bad", where: "out-of-memory",
    title: "A request for " + bytesText(last.byteSize) + " was refused",
    text: "On device " + last.device + " for " + theStream(last.stream) + "." + holders
      + (others > 0 ? " Other processes held " + bytesText(others) + "." : "") + times,
    advice: ((report && report.advice) || []).join(" ") }];
}

/** As the program cistern says it. */
const TOO_FEW_EVENTS = "too few events";

/** Sites whose live bytes only grow, as the program cistern found them in the whole recording. */
function leaks(run) {
  if (whyNoLeaks(run) === TOO_FEW_EVENTS) {
    return leaksByAge(run);
  }
  return leaksOf(run).flatMap((device) => device.found.slice(0, 3).map((leak) => leakFinding(run, leak, device)));
}

function leaksOf(run) {
  return run.ofDevice(run.snapshot.leaks || []);
}

/** Why growth says nothing of leaks on any device. */
function whyNoLeaks(run) {
  const devices = leaksOf(run);
  return devices.length === 0 ? TOO_FEW_EVENTS : devices.every(({ unknown }) => unknown !== "") ? devices[0].unknown : "";
}

function leakFinding(run, leak, device) {
  const { lives, seconds, size } = run.history;
  const site = isReplay(run) ? -1 : run.sites.numbers.get(leak.site) ?? -1; // A replay has other times, and fewer.
  let growth = 0, first = Infinity, last = 0;
  for (let i = 0; i < lives.size; i++) {
    if (lives.site[i] === site && lives.device[i] === device.device) {
      if (lives.born[i] >= 0 && lives.died[i] > lives.born[i]) {
        first = Math.min(first, seconds[lives.born[i]]);
        last = Math.max(last, seconds[lives.born[i]]);
      }
      growth += lives.bytes[i] * ((lives.born[i] >= 0 ? 1 : 0) - (lives.died[i] < size ? 1 : 0));
    }
  }
  const blocks = run.liveBlocks.filter((block) => block.site === site && block.segment.device === device.device);
  const oldest = Math.max(0, ...blocks.map((block) => block.ageNanos ?? 0)) / 1e9;
  const threads = [...new Set(blocks.map((block) => block.thread))];
  const rate = last > first ? growth / (last - first) : 0;
  const free = sum(run.devices, (each) => each.device === device.device ? each.freeBytes || 0 : 0);
  const isNeverFreed = leak.freed === 0;
  const place = run.devices.length > 1 ? " on device " + device.device : "";
  return { grade: "bad", where: "holders",
    title: (isNeverFreed ? "Likely leak: " : "Possible leak: ") + bytesText(leak.byteSize) + " live from "
      + shortened(leak.site) + place,
    text: "It holds " + counted(leak.allocated - leak.freed, "live block") + ", and grew in " + (leak.rises + 1)
      + " of 10 parts of the recording, with equally many events in each. "
      + (rate > 0 ? "From its first recorded allocation to its last, in " + secondsText(last - first)
        + ", it grew by " + bytesText(growth) + ", that is " + bytesText(rate) + "/s. " : "")
      + (isNeverFreed ? "None of its " + countText(leak.allocated) + " blocks was ever freed."
        : countText(leak.freed) + " of its " + countText(leak.allocated) + " blocks were freed.")
      + (oldest > 0 ? " The oldest is " + secondsText(oldest) + " old." : "")
      + (threads.length === 1 && threads[0] != null ? " All are from thread " + threads[0] + "." : "")
      + (rate > 0 && free > 0 ? " At this rate the device is full in " + secondsText(free / rate) + "." : ""),
    advice: /\.py:\d+\)/.test(leak.site)
      ? "Check what keeps these tensors: a list that collects them without .item() or .detach(), a global, or a graph"
        + " that is kept for a backward pass."
      : "Check what keeps these buffers: they need a close(), or a limit on how many are kept." };
}

/** Without a history: many blocks of one site whose ages are spread evenly. */
function leaksByAge(run) {
  const bySite = new Map();
  for (const block of run.liveBlocks) {
    if (block.ageNanos != null && run.sites.texts[block.site] !== NO_STACK) {
      bySite.set(block.site, bySite.get(block.site) || []);
      bySite.get(block.site).push(block);
    }
  }
  const found = [];
  for (const [site, blocks] of bySite) {
    const ages = blocks.map((block) => block.ageNanos).sort((a, b) => a - b);
    const oldest = ages[ages.length - 1];
    const bytes = sum(blocks, (block) => block.requestedBytes);
    const parts = new Set(ages.map((age) => Math.min(9, Math.floor((10 * age) / oldest)))).size;
    if (blocks.length >= 20 && parts >= 9 && bytes > run.requestedBytes / 10) {
      found.push({ grade: "warn", where: "holders",
        title: "Possible leak: " + bytesText(bytes) + " live from " + run.siteText(site),
        text: "Its " + countText(blocks.length) + " live blocks are of all ages up to " + secondsText(oldest / 1e9)
          + ": they accumulate. There is no history, so frees are unknown.",
        advice: "Record a history to see whether it grows." });
    }
  }
  return found.slice(0, 3);
}

/**
 * The segments of each stream of each allocator: {allocator, device, stream, segments, reserved, live, waiting, cached,
 * idle, pieces, largest, split: {bytes, pieces, largest} of the idle memory in segments that are partly in use}. Other
 * idle memory lies in wholly free segments: it is cached, and serves a request of their size.
 */
function memoryByStream(run) {
  const streams = new Map();
  for (const segment of run.segments) {
    if (segment.reported === false) {
      continue;
    }
    const { allocator, device } = segment;
    const stream = segment.stream ?? null;
    const key = [allocator, device, stream].join("\n");
    let memory = streams.get(key);
    if (!memory) {
      streams.set(key, memory = { allocator, device, stream, reserved: 0, live: 0, waiting: 0, cached: 0, idle: 0,
        largest: 0, pieces: 0, split: { bytes: 0, pieces: 0, largest: 0 }, segments: 0 });
    }
    memory.segments++;
    memory.reserved += segment.byteSize;
    const isUsed = segment.blocks.some((block) => block.state !== "idle");
    for (const block of segment.blocks) {
      memory[block.state] += block.byteSize;
      if (block.state === "idle") {
        for (const pieces of isUsed ? [memory, memory.split] : [memory]) {
          pieces.pieces++;
          pieces.largest = Math.max(pieces.largest, block.byteSize);
        }
        memory.split.bytes += isUsed ? block.byteSize : 0;
      }
    }
  }
  return [...streams.values()].sort((a, b) => b.reserved - a.reserved);
}

/** A stream, with its allocator and device where there are several. */
function placeText(run, { allocator, device, stream }) {
  const several = (field) => new Set(run.segments.map((segment) => segment[field])).size > 1;
  return theStream(stream) + (several("allocator") ? " of " + allocator : "")
    + (several("device") ? " on device " + device : "");
}

/** Seconds since a stream's last allocation or free; null if not known. */
function restOf(run, stream, lastUse) {
  if (!run.history) {
    return null;
  }
  const last = lastUse.get(run.streams.of(stream));
  return run.momentSeconds - (last ?? run.firstSeconds);
}

/** Who allocated on each stream, by its number: {thread, site, blocks, bytes}, the most bytes first. */
function usersByStream(run) {
  const streams = new Map();
  const add = (stream, thread, site, blocks, bytes) => {
    const users = streams.get(stream) || new Map();
    streams.set(stream, users);
    countUser(run, users, thread, site, blocks, bytes);
  };
  if (run.history) {
    const { lives } = run.history;
    for (let i = 0; i < lives.size; i++) {
      if (lives.blocks[i] > 0) {
        add(lives.stream[i], lives.thread[i], lives.site[i], lives.blocks[i], lives.bytes[i]);
      }
    }
  } else {
    run.liveBlocks.forEach((block) => add(block.streamNumber, block.threadNumber, block.site, 1,
      block.requestedBytes));
  }
  return new Map([...streams].map(([stream, users]) => [stream,
    [...users.values()].sort((a, b) => b.bytes - a.bytes)]));
}

/** Counts blocks for the thread and site that allocated them. */
function countUser(run, users, thread, site, blocks, bytes) {
  const key = thread + " " + site;
  const user = users.get(key) || { thread: run.threads.texts[thread], site: run.siteText(site), blocks: 0, bytes: 0 };
  users.set(key, user);
  user.blocks += blocks;
  user.bytes += bytes;
}

function userText(user) {
  return (user.thread == null ? "" : "thread " + user.thread + " at ") + user.site + " ("
    + counted(user.blocks, "block") + ", " + bytesText(user.bytes) + ")";
}

/** The first of them in words, and how many others there are. */
function listText(things, text, most = 3) {
  return things.slice(0, most).map(text).join("; ")
    + (things.length > most ? "; and " + countText(things.length - most) + " more" : "");
}

function strandedStreams(run) {
  const found = [];
  const streams = memoryByStream(run);
  const lastUse = run.lastUse(run.momentSeconds);
  const usersOf = usersByStream(run);
  for (const memory of streams) {
    const kept = memory.idle + memory.cached;
    const rest = memory.stream == null ? 0 : restOf(run, memory.stream, lastUse);
    if (rest === null || rest < run.recordedSeconds / 4 || streams.length < 2 || isFragmented(run, memory)
        || kept < Math.max(2 ** 20, run.reservedBytes / 20)) {
      continue;
    }
    const used = lastUse.has(run.streams.of(memory.stream));
    const users = usersOf.get(run.streams.of(memory.stream)) || [];
    found.push({ grade: "warn", where: "fragmentation", bytes: kept,
      title: "Stranded: " + bytesText(kept) + " are idle for " + placeText(run, memory),
      text: "That stream allocated and freed nothing " + (used ? "for the last " + secondsText(rest) + " of the "
        + secondsText(run.recordedSeconds) + " recorded" : "in the " + secondsText(run.recordedSeconds) + " recorded")
        + ", yet " + percentText(kept, run.reservedBytes) + " of the reserved memory waits for its next allocation, in "
        + counted(memory.segments, "segment") + ". " + (memory.live > 0 ? bytesText(memory.live)
          + " of its blocks are live." : "None of its blocks is live.")
        + (users.length > 0 ? " It was used by " + listText(users, userText) + "." : ""),
      advice: run.isOfPyTorch ? "Let fewer streams share the work, or call torch.cuda.empty_cache()."
        : "If the stream has ended, announce it (CudaStream.close, or streamClosing for a foreign one). Otherwise trim,"
          + " or let fewer streams share the work." });
  }
  return found.length > 0 ? found.sort((a, b) => b.bytes - a.bytes).slice(0, 3) : strandedByFigures(run);
}

/** Without a history the allocator's own figures have to do. */
function strandedByFigures(run) {
  if (run.history) {
    return [];
  }
  const found = new Map();
  for (const allocator of run.allocators) {
    for (const [name, bytes] of Object.entries(allocator.figures || {})) {
      const match = /^stranded_bytes\.[^.]+\.(.+)$/.exec(name);
      if (match) {
        found.set(match[1], (found.get(match[1]) || 0) + bytes);
      }
    }
  }
  return [...found].filter(([, bytes]) => bytes > Math.max(2 ** 20, run.reservedBytes / 5)).slice(0, 3)
    .map(([stream, bytes]) => ({ grade: "warn", where: "fragmentation",
      title: bytesText(bytes) + " can be used by " + (stream === "ended" ? "no stream: the streams that used them have ended"
        : theStream(Number(BigInt.asIntN(64, BigInt(stream)))) + " alone"),
      text: "That is " + percentText(bytes, run.reservedBytes) + " of the reserved memory. There is no history, so it is"
        + " unknown when the stream last worked.",
      advice: "Trim, or announce the end of streams that are no longer used." }));
}

/** Idle memory in pieces, by size. */
function idlePieces(run, stream) {
  const pieces = [];
  for (const segment of run.segments) {
    if (segment.reported !== false && (stream === undefined || (segment.stream ?? null) === stream)) {
      segment.blocks.forEach((block) => block.state === "idle" && pieces.push(block.byteSize));
    }
  }
  return pieces.sort((a, b) => b - a);
}

/** Much of the memory is idle in pieces that blocks keep apart. */
function isFragmented(run, memory) {
  const { bytes, pieces, largest } = memory.split;
  return bytes >= memory.reserved / 5 && bytes >= run.reservedBytes / 20 && bytes >= 2 ** 20
    && pieces >= 16 && largest < bytes / 10;
}

function fragmentation(run) {
  return memoryByStream(run).filter((memory) => isFragmented(run, memory)).slice(0, 3).map((memory) => {
    const neighbours = neighboursOfIdle(run, memory);
    const blocks = sum(neighbours, (each) => each.blocks);
    const { bytes, pieces, largest } = memory.split;
    const whole = memory.idle - bytes;
    return { grade: "warn", where: "segments",
      title: "Fragmented: " + percentText(bytes, memory.reserved) + " of the memory reserved for "
        + placeText(run, memory) + " is idle in pieces",
      text: bytesText(bytes) + " of " + bytesText(memory.reserved) + " are idle next to live blocks, in "
        + countText(pieces) + " pieces; the largest is " + bytesText(largest) + ". A larger request "
        + (whole > 0 ? "can't use them. Another " + bytesText(whole)
          + " are wholly free segments, which are cached, not fragmented." : "needs new memory from the driver.")
        + (blocks > 0 ? " " + counted(blocks, "live block") + " keep the pieces apart: " + listText(neighbours, userText)
          + "." : ""),
      advice: "Allocate long-lived blocks before short-lived ones, or apart from them: " + (run.isOfPyTorch
        ? "a torch.cuda.MemPool keeps them out of the way. Or try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
        : "a MemoryPool of their own keeps them out of the way.") };
  });
}

/** Who allocated the live blocks that lie next to idle memory: {thread, site, blocks, bytes}, the most blocks first. */
function neighboursOfIdle(run, memory) {
  const users = new Map();
  for (const segment of run.segments) {
    if (segment.allocator !== memory.allocator || segment.device !== memory.device
        || (segment.stream ?? null) !== memory.stream) {
      continue;
    }
    segment.blocks.forEach((block, i) => {
      const isBeside = [segment.blocks[i - 1], segment.blocks[i + 1]].some((other) => other && other.state === "idle");
      if (block.state === "live" && isBeside) {
        countUser(run, users, block.threadNumber, block.site, 1, block.requestedBytes);
      }
    });
  }
  return [...users.values()].sort((a, b) => b.blocks - a.blocks);
}

function idleCaches(run) {
  const streams = memoryByStream(run);
  const idle = sum(streams, (memory) => memory.idle + memory.cached);
  const whole = sum(streams, (memory) => memory.idle - memory.split.bytes);
  const largest = idlePieces(run)[0] || 0;
  if (idle < Math.max(2 ** 20, run.reservedBytes / 2) || largest < idle / 10 && whole < idle / 2) {
    return [];
  }
  return [{ grade: "note", where: "fragmentation",
    title: percentText(idle, run.reservedBytes) + " of the reserved memory is idle " + run.moment,
    text: bytesText(idle) + " are free, " + (largest === idle ? "in one piece"
      : (whole > 0 ? bytesText(whole) + " of them in wholly free segments, " : "") + "the largest piece being "
        + bytesText(largest)) + ". " + whatIdleMemoryMeans(run, largest),
    advice: refusedBytes(run) !== null ? ""
      : "If others need the memory: " + (run.isOfPyTorch ? "torch.cuda.empty_cache()." : "trim.") }];
}

function whatIdleMemoryMeans(run, largest) {
  const bytes = refusedBytes(run);
  return bytes === null ? "That is a normal cache if the program will need it again."
    : !run.isOfRefusal ? "The program may have freed it after the refusal of " + bytesText(bytes) + "."
    : "No piece served the request for " + bytesText(bytes) + (largest < bytes ? ", since all are smaller."
      : ": a limit refused it, or the pieces serve other streams or pools.");
}

/** The bytes of the last request that was refused; null if none was. */
function refusedBytes(run) {
  return (run.outOfMemory ?? run.refusal?.event)?.byteSize ?? null;
}

function waitingBlocks(run) {
  const waiting = sum(memoryByStream(run), (memory) => memory.waiting);
  if (waiting < Math.max(2 ** 20, run.reservedBytes / 10)) {
    return [];
  }
  return [{ grade: "warn", where: "traffic",
    title: bytesText(waiting) + " are freed but wait for other streams",
    text: "That is " + percentText(waiting, run.reservedBytes) + " of the reserved memory. It can't be reused"
      + " until these streams have completed the work that uses it.",
    advice: run.isOfPyTorch ? "Instead of calling record_stream, let the block's stream wait for the other"
      + " (Stream.wait_stream) before the last reference to the tensor is dropped."
      : "Free on the stream of the last use, or let that stream wait for the other." }];
}

function churn(run) {
  const history = run.history;
  if (!history) {
    return [];
  }
  const half = run.recordedSeconds / 2;
  let calls = 0, bytes = 0;
  for (let i = 0; i < history.size; i++) {
    if (history.kind[i] === KIND.segmentReleased && history.seconds[i] >= run.endSeconds - half) {
      calls++;
      bytes += history.bytes[i];
    }
  }
  return calls < 50 || bytes < 2 * run.reservedBytes ? [] : [{ grade: "warn", where: "timeline",
    title: "Memory goes to the driver and comes back",
    text: "In the last " + secondsText(half) + ", half of the recorded time, " + counted(calls, "segment")
      + " with " + bytesText(bytes) + " were released: at least twice what is reserved " + run.moment + ".",
    advice: "Each release costs a call of the driver: " + (run.isOfPyTorch ? "call torch.cuda.empty_cache() less often."
      : "trim less, or raise the release threshold.") }];
}

function incompleteHistory(run) {
  const lost = run.history ? run.history.recorded.lost : 0;
  return lost > 0 ? [{ grade: "note", where: "timeline", title: "The recording lost " + counted(lost, "event"),
    text: "It keeps the last " + countText(run.history.recorded.capacity || run.history.size)
      + ", so what came before is known only by what was still live.", advice: "" }] : [];
}
