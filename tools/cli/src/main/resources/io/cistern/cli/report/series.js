// Curves over time from lives and events; a chart reads of them what it has pixels for.

/** Curves over the same times, each a step from one event to the next; NaN where a curve is not known. */
class Curves {
  constructor(seconds, curves) {
    this.seconds = seconds;
    this.curves = curves;
  }

  /**
   * Columns for a chart that shows these seconds. Where a part of them has several events, the first stands for the
   * most of all and the last for itself, so that a peak never disappears and no peak lasts into a pause.
   */
  view(from, to, parts) {
    const { seconds, curves } = this;
    const end = Math.min(seconds.length, firstAfter(seconds, to) + 1);
    const starts = [];
    for (let i = Math.max(0, firstAfter(seconds, from) - 1); i < end;) {
      starts.push(i);
      const part = Math.floor(((seconds[i] - from) / (to - from)) * parts) + 1;
      const next = Math.min(end, Math.max(i + 1, firstAfter(seconds, from + ((to - from) * part) / parts)));
      if (next > i + 1) {
        starts.push(next - 1);
      }
      i = next;
    }
    return [starts.map((i) => seconds[i]), ...curves.map((curve) => starts.map((start, k) => {
      let most = curve[start];
      for (let i = start + 1; i < (starts[k + 1] ?? end); i++) {
        most = Math.max(most, curve[i]);
      }
      return isNaN(most) ? null : most;
    }))];
  }

  /** The values in force at a moment. */
  at(seconds) {
    const index = Math.max(0, firstAfter(this.seconds, seconds) - 1);
    return this.curves.map((curve) => curve[index]);
  }

  /** The last known value of each curve. */
  atEnd() {
    return this.curves.map((curve) => curve[curve.findLastIndex((value) => !isNaN(value))]);
  }
}

/** The index of the first element that is greater. */
function firstAfter(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** The seconds of all events, between the moments since which and until which memory is known. */
function timesOf(history) {
  const seconds = new Float64Array(history.size + 2);
  seconds.set(history.seconds, 1);
  seconds[0] = history.firstSeconds;
  seconds[history.size + 1] = Math.max(history.endSeconds, seconds[history.size]);
  return seconds;
}

/** Reserved bytes after each event. */
function reservedCurve(run) {
  const history = run.history;
  const curve = new Float64Array(history.size + 2);
  const changes = new Float64Array(history.size);
  let now = run.reservedBytes;
  for (let i = 0; i < history.size; i++) {
    changes[i] = history.kind[i] === KIND.segmentAcquired ? history.bytes[i]
      : history.kind[i] === KIND.segmentReleased ? -history.bytes[i] : 0;
  }
  curve[history.size + 1] = now;
  for (let i = history.size - 1; i >= 0; i--) {
    curve[i + 1] = now;
    now -= changes[i];
  }
  curve[0] = now;
  return curve;
}

/** Requested bytes after each event, and those that were freed, but wait for other streams. */
function requestedCurve(run) {
  let waiting = sum(waitingAtFirst(run).values(), (bytes) => bytes);
  return stackedCurves(run, "allocator", 0).curves[0].map((bytes, at) => {
    waiting += at > 0 && at <= run.history.size ? waitingChange(run.history, at - 1) : 0;
    return bytes + waiting;
  });
}

/**
 * Live bytes by site, thread, stream or allocator, each curve on top of the one before: the greatest groups, then
 * all others in one.
 */
function stackedCurves(run, by, most = 7) {
  const { lives, size, life, kind } = run.history;
  const key = lives[by];
  const groups = new Map();
  const groupOf = (number) => {
    let group = groups.get(number);
    if (!group) {
      groups.set(number, group = { number, now: 0, peak: 0, before: 0 });
    }
    return group;
  };
  for (let i = 0; i < lives.size; i++) {
    if (lives.born[i] < 0) {
      const group = groupOf(key[i]);
      group.before += lives.bytes[i];
      group.now = group.peak = group.before;
    }
  }
  forEachChange(life, kind, size, (i, each, sign) => {
    const group = groupOf(key[each]);
    group.now += sign * lives.bytes[each];
    group.peak = Math.max(group.peak, group.now);
  });
  const greatest = [...groups.values()].sort((a, b) => b.peak - a.peak).slice(0, most);
  greatest.forEach((group, index) => group.index = index);
  const count = greatest.length + (groups.size > greatest.length ? 1 : 0);
  const now = new Float64Array(count);
  for (const group of groups.values()) {
    now[group.index ?? count - 1] += group.before;
  }
  const curves = Array.from({ length: count }, () => new Float64Array(size + 2));
  const put = (at) => {
    let total = 0;
    for (let group = 0; group < count; group++) {
      total += now[group];
      curves[group][at] = total;
    }
  };
  put(0);
  for (let i = 0; i < size; i++) {
    const each = life[i];
    if (each >= 0) {
      now[groups.get(key[each]).index ?? count - 1] += (kind[i] === KIND.allocated ? 1 : -1) * lives.bytes[each];
    }
    put(i + 1);
  }
  put(size + 1);
  if (count === 0) {
    curves.push(new Float64Array(size + 2));
  }
  return { groups: greatest, others: groups.size - greatest.length, curves };
}

function forEachChange(life, kind, size, change) {
  for (let i = 0; i < size; i++) {
    if (life[i] >= 0) {
      change(i, life[i], kind[i] === KIND.allocated ? 1 : -1);
    }
  }
}

/**
 * What reserved memory is used for after each event, one curve on top of the other: requested, lost to rounding,
 * waiting for other streams, idle for each of some streams. The top is what is reserved.
 */
function usageCurves(run, most = 5) {
  const history = run.history;
  const { lives, life, kind, size } = history;
  const ranges = firstRanges(run);
  const usedOf = waitingAtFirst(run); // Of each stream, what is live or waits.
  let requested = 0;
  let rounded = 0;
  let waiting = sum(usedOf.values(), (bytes) => bytes);
  const use = (stream, bytes) => usedOf.set(stream, (usedOf.get(stream) || 0) + bytes);
  const change = (each, sign) => {
    requested += sign * lives.bytes[each];
    rounded += sign * lives.rounded[each];
    use(lives.stream[each], sign * lives.rounded[each]);
  };
  for (let i = 0; i < lives.size; i++) {
    if (lives.born[i] < 0) {
      change(i, 1);
    }
  }
  const idle = new Map();
  const curves = { requested: new Float64Array(size + 2), rounding: new Float64Array(size + 2),
    waiting: new Float64Array(size + 2), reserved: run.reserved };
  const put = (at) => {
    curves.requested[at] = requested;
    curves.rounding[at] = Math.max(requested, rounded);
    curves.waiting[at] = curves.rounding[at] + Math.max(0, waiting);
    for (const [stream, reserved] of ranges.bytesOf) {
      let curve = idle.get(stream);
      if (!curve && idle.size >= 40) {
        continue; // Shown with the rest.
      }
      if (!curve) {
        idle.set(stream, curve = new Float64Array(size + 2));
      }
      curve[at] = Math.max(0, reserved - (stream === SHARED ? rounded + waiting : usedOf.get(stream) || 0));
    }
  };
  put(0);
  for (let i = 0; i < size; i++) {
    if (life[i] >= 0) {
      change(life[i], kind[i] === KIND.allocated ? 1 : -1);
    }
    waiting += waitingChange(history, i);
    use(history.stream[i], waitingChange(history, i));
    changeRanges(ranges, history, i);
    put(i + 1);
  }
  put(size + 1);
  return stackedUsage(run, curves, idle, most);
}

/** Bytes that begin, or end, to wait for other streams at an event. */
function waitingChange({ kind, bytes }, i) {
  return kind[i] === KIND.freeDeferred ? bytes[i] : kind[i] === KIND.freeCompleted ? -bytes[i] : 0;
}

/** Blocks after an event that were freed, but waited for other streams: {bytes, blocks}. */
function waitingAt(run, moment, device) {
  const { history } = run;
  const of = (each) => device === undefined || each === device;
  const waiting = sum(run.snapshotSegments, (segment) => of(segment.device) ? segment.blocks.filter(isWaiting).length : 0);
  const found = { bytes: waitingNow(run, device), blocks: waiting };
  for (let i = history.size - 1; i > moment; i--) {
    const change = of(history.device[i]) ? waitingChange(history, i) : 0;
    found.bytes -= change;
    found.blocks -= Math.sign(change);
  }
  return found.blocks > 0 ? found : { bytes: 0, blocks: 0 };
}

const isWaiting = (block) => block.state === "waiting";

function waitingNow(run, device) {
  return sum(run.snapshotSegments, (segment) => device === undefined || segment.device === device
    ? sum(segment.blocks.filter(isWaiting), (block) => block.requestedBytes || block.byteSize) : 0);
}

/** The bytes that waited for other streams when the recording began, by their own streams. */
function waitingAtFirst(run) {
  const waiting = new Map();
  const add = (stream, bytes) => waiting.set(stream, (waiting.get(stream) || 0) + bytes);
  for (const segment of run.snapshotSegments) {
    segment.blocks.filter(isWaiting).forEach((block) =>
      add(run.streams.of(block.stream ?? segment.stream ?? null), block.requestedBytes || block.byteSize));
  }
  for (let i = 0; i < run.history.size; i++) {
    add(run.history.stream[i], -waitingChange(run.history, i));
  }
  return new Map([...waiting].filter(([, bytes]) => bytes > 0));
}

function stackedUsage(run, curves, idle, most) {
  const peak = (curve) => curve.reduce((a, b) => Math.max(a, b), 0);
  const greatest = [...idle].map(([stream, curve]) => ({ stream, curve, peak: peak(curve) }))
    .filter((each) => each.peak > 0).sort((a, b) => b.peak - a.peak).slice(0, most);
  const stacked = [curves.requested, curves.rounding, curves.waiting];
  const names = ["requested", "lost to rounding", "waiting for other streams"];
  for (const { stream, curve } of greatest) {
    const below = stacked[stacked.length - 1];
    stacked.push(curve.map((value, i) => Math.min(below[i] + value, Math.max(below[i], curves.reserved[i]))));
    names.push(stream === SHARED ? "idle, for any stream" : stream === -1 ? "idle, never used"
      : "idle, for " + theStream(run.streams.texts[stream]));
  }
  const below = stacked[stacked.length - 1];
  if (curves.reserved.some((value, i) => value > below[i] * 1.001 + 1)) {
    stacked.push(curves.reserved.map((value, i) => Math.max(value, below[i])));
    names.push("idle, other");
  }
  return { names, curves: stacked, reserved: curves.reserved };
}
