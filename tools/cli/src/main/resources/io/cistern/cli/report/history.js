// Events and lives of blocks, in columns: typed arrays that charts and tables read.

const KIND = Object.fromEntries(["other", "allocated", "freed", "freeDeferred", "freeCompleted", "segmentAcquired",
  "segmentReleased", "pageMoved", "trimmed", "currentChanged", "reclaimed", "outOfMemory", "streamWaited",
  "streamClosed", "annotated", "scopeEntered", "scopeLeft"].map((name, number) => [name, number]));

/** Who freed a block whose address is allocated again, though no free was recorded. */
const UNRECORDED = -2;

/** Texts and their numbers. */
class Names {
  constructor() {
    this.numbers = new Map();
    this.texts = [];
  }

  of(text) {
    let number = this.numbers.get(text);
    if (number === undefined) {
      number = this.texts.length;
      this.numbers.set(text, number);
      this.texts.push(text);
    }
    return number;
  }
}

/**
 * The lives of blocks: each from one event to another, -1 before the recording, the number of events if live. A life
 * counts as some blocks: as none if it is drawn for many small ones, which are a life without a time.
 */
class Lives {
  constructor() {
    this.size = 0;
    this.columns = { born: [], died: [], bytes: [], rounded: [], site: [], stack: [], thread: [], stream: [],
      allocator: [], device: [], scope: [], freedBy: [], freedOn: [], blocks: [], age: [], address: [] };
  }

  add(life) {
    for (const [name, column] of Object.entries(this.columns)) {
      column.push(life[name] ?? (name === "blocks" ? 1 : -1));
    }
    return this.size++;
  }

  /** From now on the columns are typed arrays, and fields of this object. */
  seal() {
    for (const [name, column] of Object.entries(this.columns)) {
      this[name] = ["bytes", "rounded", "age", "address"].includes(name) ? Float64Array.from(column) : Int32Array.from(column);
    }
    this.columns = null;
    return this;
  }
}

/** The events of a history by their columns, in the order of time, each with the life that it begins or ends. */
class History {
  constructor(run, recorded) {
    const events = inOrder(segmentsFirst(run.ofDevice(recorded.events)));
    const size = events.length;
    this.recorded = recorded;
    this.size = size;
    this.kind = new Uint8Array(size);
    this.seconds = new Float64Array(size);
    this.address = new Float64Array(size);
    this.former = new Float64Array(size);
    this.bytes = new Float64Array(size);
    this.took = new Float64Array(size);
    this.life = new Int32Array(size).fill(-1);
    for (const column of ["thread", "stream", "awaited", "allocator", "device"]) {
      this[column] = new Int32Array(size).fill(-1);
    }
    // Of each device, the event at its peak, and the refusal at which it requested more, if events are drawn together.
    this.peaks = new Map();
    this.refusedPeaks = new Map();
    this.marks = [];
    this.reclaims = [];
    const scopesOf = new Map(); // Of each thread, the innermost last.
    const lives = new Lives();
    const open = new Map();
    for (let i = 0; i < size; i++) {
      this.read(i, events[i], run, lives, open);
      this.noteScope(i, events[i], run, lives, scopesOf);
    }
    // What was live before an event that is lost is not known.
    this.firstSeconds = size === 0 ? 0 : recorded.lost > 0 ? this.seconds[0] : Math.min(0, this.seconds[0]);
    this.endSeconds = endOf(run, recorded, size > 0 ? this.seconds[size - 1] : 0);
    this.addBlocksFromBefore(run, lives, open);
    for (const each of run.ofDevice(recorded.together || [])) {
      lives.add({ ...each, born: 0, died: 0, bytes: each.byteSize, rounded: 0, stream: run.streams.of(each.stream),
        thread: run.threadOf(each.thread), freedBy: run.threadOf(each.freedBy),
        freedOn: run.streams.of(each.freedOn), allocator: run.owners.of(each.allocator), ...run.origin(each) });
    }
    this.lives = lives.seal();
    this.startedAt = recorded.startedAt;
  }

  read(i, event, run, lives, open) {
    const kind = KIND[event.event] || KIND.other;
    this.kind[i] = kind;
    this.seconds[i] = event.nanos / 1e9;
    this.address[i] = event.address || 0;
    this.former[i] = event.formerAddress || 0;
    this.bytes[i] = event.byteSize || 0;
    this.took[i] = (event.tookNanos || 0) / 1e9;
    this.thread[i] = run.threadOf(event.thread);
    this.device[i] = event.device ?? -1;
    if (event.stream != null) {
      this.stream[i] = run.streams.of(event.stream);
    }
    if (event.awaited != null) {
      this.awaited[i] = run.streams.of(event.awaited);
    }
    if (event.allocator != null) {
      this.allocator[i] = run.owners.of(event.allocator);
    }
    if (kind === KIND.allocated) {
      const former = open.get(event.address);
      if (former !== undefined) {
        lives.columns.died[former] = i;
        lives.columns.freedBy[former] = lives.columns.freedOn[former] = UNRECORDED;
      }
      this.life[i] = lives.add({ born: i, died: -1, bytes: event.byteSize, rounded: 0, thread: this.thread[i],
        stream: this.stream[i], allocator: this.allocator[i], device: event.device, address: event.address,
        blocks: event.together ? 0 : 1, ...run.origin(event) });
      if (event.peak) {
        this.peaks.set(event.device, i);
      }
      open.set(event.address, this.life[i]);
    } else if (kind === KIND.freed) {
      const life = open.get(event.address) ?? lives.add({ bytes: event.byteSize, stream: this.stream[i],
        allocator: this.allocator[i], device: event.device, address: event.address,
        thread: run.threads.of("before the recording"), ...run.origin(null) });
      open.delete(event.address);
      lives.columns.died[life] = i;
      lives.columns.freedBy[life] = this.thread[i];
      lives.columns.freedOn[life] = this.stream[i];
      this.life[i] = life;
    } else if (kind === KIND.annotated || kind === KIND.outOfMemory || kind === KIND.currentChanged) {
      this.marks.push({ at: i, seconds: this.seconds[i], event });
      if (event.peak) {
        this.refusedPeaks.set(event.device, i);
      }
    } else if (kind === KIND.reclaimed) {
      this.reclaims.push({ at: i, seconds: this.seconds[i], event });
    }
  }

  /** About what a block of so many requested bytes takes. */
  rounded(bytes) {
    return Math.ceil(bytes / this.rounding) * this.rounding;
  }

  noteScope(i, event, run, lives, scopesOf) {
    const scopes = scopesOf.get(this.thread[i]);
    if (this.kind[i] === KIND.scopeEntered) {
      scopesOf.set(this.thread[i], [...(scopes || []), run.scopes.of(event.allocator)]);
    } else if (this.kind[i] === KIND.scopeLeft && scopes) {
      scopesOf.set(this.thread[i], scopes.slice(0, -1));
    } else if (this.kind[i] === KIND.allocated) {
      lives.columns.scope[this.life[i]] = scopes && scopes.length > 0 ? scopes[scopes.length - 1]
        : run.scopes.of(NO_SCOPE);
    }
  }

  /** What is live now and was allocated before the first event that is known; and how much each block really takes. */
  addBlocksFromBefore(run, lives, open) {
    const columns = lives.columns;
    this.rounding = run.rounding();
    const addresses = Float64Array.from(open.keys()).sort();
    for (const block of run.liveBlocks) {
      // The program's address may lie a little behind where the block begins, as with guards around it.
      const address = addresses[firstAfter(addresses, block.address - 1)];
      let life = address < block.address + block.byteSize ? open.get(address) : undefined;
      if (life === undefined) {
        life = lives.add({ bytes: block.requestedBytes, thread: block.threadNumber, stream: block.streamNumber,
          allocator: block.owner, device: block.segment.device, site: block.site, stack: block.stack,
          scope: block.scopeNumber, age: block.ageNanos == null ? -1 : block.ageNanos / 1e9 });
        open.set(block.address, life);
      }
      if (block.scope == null && columns.scope[life] >= 0) {
        block.scopeNumber = columns.scope[life];
        block.scope = run.scopes.texts[block.scopeNumber];
      }
      if (columns.born[life] >= 0) {
        block.ageNanos ??= (this.endSeconds - this.seconds[columns.born[life]]) * 1e9;
      }
      columns.address[life] = block.address;
      columns.rounded[life] = block.byteSize;
    }
    for (const life of open.values()) {
      columns.died[life] = this.size;
    }
    for (let life = 0; life < lives.size; life++) {
      if (!(columns.rounded[life] > 0)) {
        columns.rounded[life] = this.rounded(columns.bytes[life]);
      }
    }
  }
}

/**
 * An allocator tells of a segment after the allocation that it came for: here it comes before, as it did. An allocation
 * that was freed lay in an earlier segment at that address.
 */
function segmentsFirst(events) {
  const lastOf = new Map(); // The last allocation of each thread.
  const live = new Map();
  for (const event of events) {
    const last = lastOf.get(event.thread);
    if (event.event === "allocated") {
      lastOf.set(event.thread, event);
      live.set(event.address, event);
    } else if (event.event === "freed") {
      live.delete(event.address);
    } else if (event.event === "segmentAcquired" && last && live.get(last.address) === last && last.nanos <= event.nanos
        && last.address < event.address + event.byteSize && event.address < last.address + last.byteSize) {
      event.nanos = last.nanos - 0.5;
    }
  }
  return events;
}

function inOrder(events) {
  for (let i = 1; i < events.length; i++) {
    if (events[i].nanos < events[i - 1].nanos) {
      return [...events].sort((a, b) => a.nanos - b.nanos);
    }
  }
  return events;
}

/** The snapshot's moment. A replay's clock is its own, so there the last event has to do. */
function endOf(run, recorded, lastSeconds) {
  const passed = (Date.parse(run.snapshot.takenAt) - Date.parse(recorded.startedAt)) / 1000;
  return passed > lastSeconds && run.snapshot.reason !== "peak of a replay" ? passed : lastSeconds;
}
