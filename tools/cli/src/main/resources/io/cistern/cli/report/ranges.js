// Which addresses are reserved, and for which stream, as segments come and go.

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

  add(from, to, stream) {
    const index = this.indexAt(from) + 1;
    this.starts.splice(index, 0, from);
    this.items.splice(index, 0, { from, to, stream });
    this.count(stream, to - from);
  }

  /** Takes a range away; parts of ranges that lie outside it stay. */
  remove(from, to) {
    let index = Math.max(0, this.indexAt(from));
    let stream = -1;
    while (index < this.items.length && this.items[index].from < to) {
      const item = this.items[index];
      if (item.to <= from) {
        index++;
        continue;
      }
      this.starts.splice(index, 1);
      this.items.splice(index, 1);
      this.count(item.stream, item.from - item.to);
      stream = item.stream;
      if (item.from < from) {
        this.add(item.from, from, item.stream);
        index++;
      }
      if (item.to > to) {
        this.add(to, item.to, item.stream);
      }
    }
    return stream;
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

/**
 * The ranges when the recording began: those of now, with all events undone, the last one first. A range that was
 * released served the stream of the blocks that lay in it.
 */
function firstRanges(run) {
  const ranges = new Ranges();
  for (const segment of run.segments) {
    if (segment.reported !== false) {
      ranges.add(segment.address, segment.address + segment.byteSize,
        segment.stream == null ? SHARED : run.streams.of(segment.stream));
    }
  }
  const { kind, address, former, bytes, stream, size, lives } = run.history;
  for (let i = size - 1; i >= 0; i--) {
    const end = address[i] + bytes[i];
    if (kind[i] === KIND.segmentAcquired) {
      ranges.remove(address[i], end);
    } else if (kind[i] === KIND.segmentReleased) {
      ranges.add(address[i], end, stream[i]);
    } else if (kind[i] === KIND.pageMoved) {
      ranges.add(former[i], former[i] + bytes[i], ranges.remove(address[i], end));
    }
  }
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
    const before = ranges.remove(former[i], former[i] + bytes[i]);
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
