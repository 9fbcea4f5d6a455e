// Which addresses are reserved, and for which stream, as segments come and go; and the segments at an earlier moment.

class Ranges {
  constructor() {
    this.starts = [];
    this.items = [];
    this.bytesOf = new Map();
  }

  /** The last range that begins at an address or before, by its index; -1 if there is none. */
  indexAt(address) {
    let low = 0;
    let high = this.starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.starts[middle] <= address) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low - 1;
  }

  count(stream, bytes) {
    this.bytesOf.set(stream, (this.bytesOf.get(stream) || 0) + bytes);
  }

  /** @param segment whose part it is: its allocator, its device, and whether it is expandable, as far as known */
  add(from, to, stream, segment) {
    const index = this.indexAt(from) + 1;
    this.starts.splice(index, 0, from);
    this.items.splice(index, 0, { from, to, stream, segment });
    this.count(stream, to - from);
  }

  /** Takes a range away; parts of ranges that lie outside it stay. Returns the last one that it found there. */
  remove(from, to) {
    let index = Math.max(0, this.indexAt(from));
    let found = { stream: -1, segment: {} };
    while (index < this.items.length && this.items[index].from < to) {
      const item = this.items[index];
      if (item.to <= from) {
        index++;
        continue;
      }
      this.starts.splice(index, 1);
      this.items.splice(index, 1);
      this.count(item.stream, item.from - item.to);
      found = item;
      if (item.from < from) {
        this.add(item.from, from, item.stream, item.segment);
        index++;
      }
      if (item.to > to) {
        this.add(to, item.to, item.stream, item.segment);
      }
    }
    return found;
  }

  /** A block of a stream lies here, so these ranges serve that stream. */
  serve(from, to, stream) {
    for (let index = Math.max(0, this.indexAt(from)); index < this.items.length && this.items[index].from < to; index++) {
      const item = this.items[index];
      if (item.to > from && item.stream !== stream && item.stream !== SHARED) {
        this.count(item.stream, item.from - item.to);
        this.count(stream, item.to - item.from);
        item.stream = stream;
      }
    }
  }
}

/** Serves any stream, as opposed to -1: not known yet. */
const SHARED = -2;

/** The ranges after an event: those of the snapshot, with all later events undone, the last one first. */
function rangesAfter(run, last) {
  const ranges = new Ranges();
  for (const segment of run.snapshotSegments) {
    if (segment.reported !== false) {
      ranges.add(segment.address, segment.address + segment.byteSize,
        segment.stream == null ? SHARED : run.streams.of(segment.stream), segment);
    }
  }
  const { kind, address, former, bytes, stream, allocator, device, size } = run.history;
  for (let i = size - 1; i > last; i--) {
    const end = address[i] + bytes[i];
    if (kind[i] === KIND.segmentAcquired) {
      ranges.remove(address[i], end);
    } else if (kind[i] === KIND.segmentReleased) {
      ranges.add(address[i], end, stream[i], { allocator: run.owners.texts[allocator[i]], device: device[i] });
    } else if (kind[i] === KIND.pageMoved) {
      const moved = ranges.remove(address[i], end);
      ranges.add(former[i], former[i] + bytes[i], moved.stream, moved.segment);
    }
  }
  return ranges;
}

/** The ranges when the recording began. A range that was released served the stream of the blocks that lay in it. */
function firstRanges(run) {
  const ranges = rangesAfter(run, -1);
  const { address, size, lives } = run.history;
  const { born, died, rounded } = lives;
  for (let i = 0; i < lives.size; i++) {
    if (born[i] < 0 && died[i] >= 0 && died[i] < size) {
      ranges.serve(address[died[i]], address[died[i]] + rounded[i], lives.stream[i]);
    }
  }
  return ranges;
}

/** Applies one event. */
function changeRanges(ranges, history, i) {
  const { kind, address, former, bytes, stream } = history;
  const end = address[i] + bytes[i];
  if (kind[i] === KIND.segmentAcquired) {
    ranges.add(address[i], end, streamNear(history, i));
  } else if (kind[i] === KIND.segmentReleased) {
    ranges.remove(address[i], end);
  } else if (kind[i] === KIND.pageMoved) {
    const before = ranges.remove(former[i], former[i] + bytes[i]).stream;
    const now = streamNear(history, i);
    ranges.add(address[i], end, now >= 0 && before !== SHARED ? now : before);
  } else if (kind[i] === KIND.allocated) {
    ranges.serve(address[i], end, stream[i]);
  }
}

/**
 * The stream of the request that memory came for. If the event does not tell, that is among the events before or after;
 * -1 if it is not.
 */
function streamNear(history, came) {
  const { kind, address, bytes, stream, size } = history;
  if (stream[came] >= 0) {
    return stream[came];
  }
  const end = address[came] + bytes[came];
  for (let i = Math.max(0, came - 16); i < Math.min(size, came + 32); i++) {
    if (kind[i] === KIND.allocated && address[i] < end && address[i] + bytes[i] > address[came]) {
      return stream[i];
    }
  }
  return -1;
}

/**
 * The segments after an event, with their blocks. How much a block takes that was freed later is estimated, and what
 * threads kept in their caches counts as idle.
 */
function segmentsAfter(run, last) {
  const blocks = blocksAfter(run, last).sort((a, b) => a.address - b.address);
  const segments = [];
  let next = 0;
  const alone = (block) => segments.push({ ...block.segment, address: block.address, byteSize: block.byteSize,
    stream: null, reported: false, blocks: [block] });
  for (const range of joined(rangesAfter(run, last).items, blocks)) {
    for (; next < blocks.length && blocks[next].address < range.from; next++) {
      alone(blocks[next]);
    }
    const first = next;
    while (next < blocks.length && blocks[next].address < range.to) {
      next++;
    }
    segments.push({ ...range.segment, address: range.from, byteSize: range.to - range.from,
      stream: range.stream < 0 ? null : run.streams.texts[range.stream], blocks: tiled(range, blocks.slice(first, next)) });
  }
  blocks.slice(next).forEach(alone);
  segments.forEach((segment) => segment.blocks.forEach((block) => block.segment = segment));
  return segments;
}

/** Ranges side by side are one segment if it is expandable, or if a block lies in both. */
function joined(ranges, blocks) {
  const all = [];
  let next = 0;
  for (const range of ranges) {
    const last = all.at(-1);
    while (next < blocks.length && blocks[next].address < range.from) {
      next++;
    }
    const spans = next > 0 && blocks[next - 1].address + blocks[next - 1].requestedBytes > range.from;
    if (last && last.to === range.from && last.stream === range.stream && last.segment.device === range.segment.device
        && (spans || last.segment.expandable || range.segment.expandable)) {
      last.to = range.to;
    } else {
      all.push({ ...range });
    }
  }
  return all;
}

/** The blocks of a range, with idle ones between them. */
function tiled({ from, to }, blocks) {
  const all = [];
  const fill = (begin, end) => begin < end && all.push({ address: begin, byteSize: end - begin, requestedBytes: 0,
    state: "idle" });
  let end = from;
  blocks.forEach((block, i) => {
    fill(end, block.address);
    end = Math.min(block.address + block.byteSize, blocks[i + 1]?.address ?? to);
    all.push({ ...block, byteSize: end - block.address });
  });
  fill(end, to);
  return all;
}

/** The blocks after an event that were live, or freed but waited for other streams. */
function blocksAfter(run, last) {
  const { lives, kind, address, bytes, stream, allocator, device, seconds, size, endSeconds } = run.history;
  const blocks = [];
  for (let i = 0; i < lives.size; i++) {
    if (lives.blocks[i] > 0 && lives.born[i] <= last && lives.died[i] > last) {
      const age = lives.born[i] >= 0 ? seconds[last] - seconds[lives.born[i]]
        : lives.age[i] >= 0 ? lives.age[i] - (endSeconds - seconds[last]) : -1;
      blocks.push({ address: lives.address[i], byteSize: lives.rounded[i], requestedBytes: lives.bytes[i], state: "live",
        ageNanos: age < 0 ? null : age * 1e9, stream: run.streams.texts[lives.stream[i]], streamNumber: lives.stream[i],
        thread: run.threads.texts[lives.thread[i]], threadNumber: lives.thread[i], owner: lives.allocator[i],
        scope: run.scopes.texts[lives.scope[i]], scopeNumber: lives.scope[i], site: lives.site[i], stack: lives.stack[i],
        segment: { allocator: run.owners.texts[lives.allocator[i]], device: lives.device[i] } });
    }
  }
  const waiting = new Map();
  for (const segment of run.snapshotSegments) {
    segment.blocks.filter(isWaiting).forEach((block) => waiting.set(block.address, { ...block, segment }));
  }
  for (let i = size - 1; i > last; i--) {
    if (kind[i] === KIND.freeDeferred) {
      waiting.delete(address[i]);
    } else if (kind[i] === KIND.freeCompleted) {
      waiting.set(address[i], { address: address[i], byteSize: run.history.rounded(bytes[i]), requestedBytes: bytes[i],
        state: "waiting", stream: run.streams.texts[stream[i]],
        segment: { allocator: run.owners.texts[allocator[i]], device: device[i] } });
    }
  }
  return [...blocks, ...waiting.values()];
}
