// One snapshot as the page uses it: the segments, live blocks and history of one device, or of all. If a request was
// refused, the segments and live blocks are those of the last refusal, unless somebody asks for those of the snapshot.

const NO_STACK = "no call stack";
const NO_SCOPE = "no scope";
const BEFORE = "allocated before the recording";
/** The kinds of events that change segments or their blocks. */
const CHANGES = new Set([KIND.allocated, KIND.freed, KIND.freeDeferred, KIND.freeCompleted, KIND.segmentAcquired,
  KIND.segmentReleased, KIND.pageMoved]);
const WAITING = "freed, but waiting for another stream (record_stream)";
/** Python code that is neither the interpreter's nor a library's. */
const isOwn = (frame) => /\((.*\.py:|<(?!frozen |eval_with_key>))/.test(frame)
  && !/\/(site-packages|dist-packages|torch)\/|\/lib\/python/.test(frame);

/** A site of Python in short, as fit shows it: "train.py:12 (step)"; without a file, "at::empty". */
function shortened(site) {
  return site.replace(/^(.*?)\(\?\?:0\)$/, "$1").replace(/^(.*?)\((?:.*\/)?([^/]*\.py:\d+)\)$/, "$2 ($1)");
}

class Run {
  /** @param isOfSnapshot whether it shows the moment of the snapshot, though a request was refused before */
  constructor(snapshot, name, device, isOfSnapshot) {
    this.snapshot = snapshot;
    this.name = name;
    this.device = device;
    this.threads = new Names();
    this.knowsThreads = false;
    this.isOfPyTorch = snapshot.format === undefined;
    this.streams = new Names();
    this.owners = new Names();
    this.sites = new Names();
    this.stacks = new Names();
    this.scopes = new Names();
    this.frames = snapshot.frames || [];
    this.sitesOf = new Map(); // Of each call stack, by its frames.
    this.devices = this.ofDevice(snapshot.devices || []);
    this.allocators = this.ofDevice(snapshot.allocators || []);
    this.segments = this.ofDevice(snapshot.segments || []).map((segment) =>
      ({ ...segment, blocks: segment.blocks.map((block) => ({ ...block })) })); // Another run may read the same.
    this.liveBlocks = [];
    this.segments.forEach((segment) => this.readSegment(segment));
    this.history = snapshot.history ? new History(this, snapshot.history) : null;
    this.firstSeconds = this.history ? this.history.firstSeconds : 0;
    this.endSeconds = this.history ? this.history.endSeconds : 0;
    this.recordedSeconds = this.endSeconds - this.firstSeconds;
    this.snapshotSegments = this.segments;
    this.reservedBytes = this.sumOf("reserved_bytes.all.current",
      () => sum(this.segments, (segment) => segment.reported === false ? 0 : segment.byteSize));
    this.reserved = this.history ? reservedCurve(this) : null;
    const refused = snapshot.outOfMemory;
    this.outOfMemory = refused && (device == null || refused.device === device) ? refused : null;
    this.refusal = this.history ? this.history.marks.findLast(({ event }) => event.event === "outOfMemory") : undefined;
    this.isOfRefusal = this.refusal !== undefined && !isOfSnapshot;
    this.momentSeconds = this.isOfRefusal ? this.refusal.seconds : this.endSeconds;
    if (this.isOfRefusal && this.hasChangedSince(this.refusal.at)) {
      this.segments = segmentsAfter(this, this.refusal.at);
      this.liveBlocks = this.segments.flatMap(({ blocks }) => blocks.filter((block) => block.state === "live"));
      this.reservedBytes = this.reserved[this.refusal.at + 1];
    }
    this.requestedBytes = sum(this.liveBlocks, (block) => block.requestedBytes);
  }

  /** Whether the segments and their blocks at the snapshot differ from those after an event. */
  hasChangedSince(event) {
    return this.history.kind.subarray(event + 1).some((kind) => CHANGES.has(kind));
  }

  /** The moment of the segments and live blocks, in words. */
  get moment() {
    return this.isOfRefusal ? "at the refusal" : "at the snapshot";
  }

  ofDevice(things) {
    return this.device == null ? things
      : things.filter((thing) => thing.device === undefined || thing.device === this.device);
  }

  /** The number of a thread; -1 if it is not known. */
  threadOf(thread) {
    this.knowsThreads ||= thread != null;
    return thread == null ? -1 : this.threads.of(thread);
  }

  /** Those choices of a grouping that the snapshot says something of. */
  known(choices) {
    return choices.filter(([by]) => by === "scope" ? this.scopes.texts.length > 1 : by !== "thread" || this.knowsThreads);
  }

  readSegment(segment) {
    const owner = this.owners.of(segment.allocator);
    for (const block of segment.blocks) {
      block.segment = segment;
      if (block.state === "live") {
        block.requestedBytes ||= block.byteSize;
        block.owner = owner;
        block.threadNumber = this.threadOf(block.thread);
        block.streamNumber = this.streams.of(block.stream ?? segment.stream ?? null);
        block.scopeNumber = this.scopes.of(block.scope ?? NO_SCOPE);
        Object.assign(block, this.origin(block));
        this.liveBlocks.push(block);
      }
    }
  }

  /** The site and the call stack of a block or event. */
  origin(thing) {
    if (thing === null) {
      return { site: this.sites.of(BEFORE), stack: this.stacks.of("") };
    }
    const frames = thing.frames || (this.snapshot.stacks || [])[thing.callStack] || [];
    const text = frames.join(" ");
    if (!this.sitesOf.has(text)) {
      const own = frames.find((frame) => isOwn(this.frames[frame] || ""))
        ?? frames.find((frame) => (this.frames[frame] || "").includes(".py:")) ?? frames[0];
      this.sitesOf.set(text, { site: this.sites.of(this.frames[own] ?? NO_STACK), stack: this.stacks.of(text) });
    }
    return this.sitesOf.get(text);
  }

  siteText(site) {
    return shortened(this.sites.texts[site]);
  }

  /** The lines of a call stack, innermost first. */
  stackLines(stack) {
    const text = this.stacks.texts[stack];
    return text === "" ? [NO_STACK] : text.split(" ").map((frame) => this.frames[frame] ?? "?");
  }

  /** Blocks are multiples of this. */
  rounding() {
    let unit = 2 ** 21;
    const sizes = this.liveBlocks.filter((block) => block.segment.reported !== false).map((block) => block.byteSize);
    for (const size of sizes) {
      while (size % unit !== 0) {
        unit /= 2;
      }
    }
    return sizes.length === 0 || sizes.length < 16 && unit > 512 ? 512 : Math.max(1, unit);
  }

  /** The sum of one figure of all allocators; else what the function says. */
  sumOf(figure, otherwise) {
    const known = this.allocators.map((allocator) => (allocator.figures || {})[figure]).filter((value) => value != null);
    return known.length > 0 ? sum(known, (value) => value) : otherwise();
  }

  /** For each stream by its number: the seconds of its last allocation or free until then; missing if there was none. */
  lastUse(until = Infinity) {
    const last = new Map();
    if (this.history) {
      const { kind, stream, seconds, size } = this.history;
      for (let i = 0; i < size; i++) {
        if (seconds[i] <= until && (kind[i] === KIND.allocated || kind[i] === KIND.freed)) {
          last.set(stream[i], seconds[i]);
        }
      }
      for (const each of this.ofDevice(this.history.recorded.together || [])) {
        const number = this.streams.of(each.stream);
        last.set(number, Math.max(last.get(number) ?? 0, Math.min(until, each.lastNanos / 1e9)));
      }
    }
    return last;
  }
}

function sum(things, value) {
  let total = 0;
  for (const thing of things) {
    total += value(thing);
  }
  return total;
}
