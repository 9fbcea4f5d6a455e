// Threads and streams: where blocks are allocated and freed, and which stream waits for which.

const ACTIVITY_PARTS = 60;

function trafficSection(run) {
  if (!run.history) {
    return section("traffic", "Threads and streams", element("p", { class: "note" },
      "The snapshot has no history: start a recording to see threads and streams at work."));
  }
  return section("traffic", "Threads and streams", explained("frees of others"),
    run.knowsThreads ? threadTable(run) : null, streamActivityTable(run), run.knowsThreads ? handoverTable(run) : null,
    waitTable(run), deferredLine(run));
}

/** Counts by thread or stream, over the events of blocks. */
function activityBy(run, column) {
  const history = run.history;
  const { lives, size } = history;
  const freed = column === "thread" ? lives.freedBy : lives.freedOn;
  const rows = new Map();
  const rowOf = (number) => {
    if (!rows.has(number)) {
      rows.set(number, { number, allocations: 0, bytes: 0, frees: 0, elsewhere: 0, took: 0, slowest: 0, last: 0,
        streams: new Set(), parts: new Float64Array(ACTIVITY_PARTS) });
    }
    return rows.get(number);
  };
  const first = run.firstSeconds;
  const span = run.recordedSeconds || 1;
  for (let i = 0; i < history.size; i++) {
    const kind = history.kind[i];
    if (kind !== KIND.allocated && kind !== KIND.freed) {
      continue;
    }
    const row = rowOf(history[column][i]);
    if (kind === KIND.allocated) {
      row.took += history.took[i];
      row.slowest = Math.max(row.slowest, history.took[i]);
    }
    row.streams.add(history.stream[i]);
    row.last = history.seconds[i];
    row.parts[Math.min(ACTIVITY_PARTS - 1, Math.floor((ACTIVITY_PARTS * (row.last - first)) / span))]++;
  }
  for (let i = 0; i < lives.size; i++) {
    if (lives.born[i] >= 0) {
      const row = rowOf(lives[column][i]);
      row.allocations += lives.blocks[i];
      row.bytes += lives.blocks[i] > 0 ? lives.bytes[i] : 0;
      row.streams.add(lives.stream[i]);
    }
    if (lives.died[i] < size && freed[i] !== UNRECORDED) {
      const row = rowOf(freed[i]);
      row.frees += lives.blocks[i];
      row.elsewhere += freed[i] === lives[column][i] ? 0 : lives.blocks[i];
    }
  }
  if (column === "stream") {
    run.lastUse().forEach((seconds, stream) => rowOf(stream).last = seconds);
  }
  return [...rows.values()];
}

const ACTIVITY_COLUMNS = [
  { title: "Allocations", value: (row) => row.allocations, text: (row) => countText(row.allocations), bar: true },
  { title: "Bytes", value: (row) => row.bytes, text: (row) => bytesText(row.bytes) },
  { title: "Frees", value: (row) => row.frees, text: (row) => countText(row.frees) },
];

function threadTable(run) {
  return sortableTable("Threads", [
    { title: "Thread", value: (row) => nameOf(run, "thread", row.number), wide: true },
    ...ACTIVITY_COLUMNS,
    { title: "Frees of others", value: (row) => row.elsewhere, text: (row) => countText(row.elsewhere) },
    { title: "Streams", value: (row) => row.streams.size },
    { title: "Mean time", value: (row) => row.allocations ? row.took / row.allocations : 0,
      text: (row) => row.took > 0 ? secondsText(row.took / row.allocations) : "unknown" },
    { title: "Slowest", value: (row) => row.slowest, text: (row) => row.took > 0 ? secondsText(row.slowest) : "unknown" },
    activityColumn(run),
  ], activityBy(run, "thread"), 1);
}

function streamActivityTable(run) {
  const usersOf = usersByStream(run);
  return sortableTable("Streams", [
    { title: "Stream, and who used it", wide: true, value: (row) => nameOf(run, "stream", row.number),
      text: (row) => [nameOf(run, "stream", row.number), userList(usersOf.get(row.number) || [])] },
    ...ACTIVITY_COLUMNS,
    { title: "Frees of others", value: (row) => row.elsewhere, text: (row) => countText(row.elsewhere) },
    { title: "Inactive for", value: (row) => run.endSeconds - row.last,
      text: (row) => secondsText(run.endSeconds - row.last) },
    activityColumn(run),
  ], activityBy(run, "stream"), 1);
}

/** Who used a stream: the one with the most bytes; opened, all of them. */
function userList(users) {
  return users.length < 2 ? element("div", { class: "faint" }, users.map(userText))
    : element("details", { class: "faint" }, element("summary", {}, userText(users[0]) + ", and "
      + countText(users.length - 1) + " more"),
    element("ul", {}, users.slice(1, 50).map((user) => element("li", {}, userText(user)))));
}

/** Small bars: how much went on in each part of the recording. */
function activityColumn(run) {
  return { title: "Activity", value: (row) => String(row.last), text: (row) => {
    const most = Math.max(...row.parts);
    const namespace = "http://www.w3.org/2000/svg";
    const picture = document.createElementNS(namespace, "svg");
    picture.setAttribute("viewBox", "0 0 " + ACTIVITY_PARTS * 2 + " 16");
    picture.setAttribute("role", "img");
    picture.setAttribute("class", "activity");
    picture.setAttribute("aria-label", "last active at " + secondsText(row.last) + " of " + secondsText(run.endSeconds));
    row.parts.forEach((count, i) => {
      const height = count === 0 ? 0 : 2 + 14 * Math.sqrt(count / most);
      const bar = document.createElementNS(namespace, "rect");
      bar.setAttribute("x", 2 * i);
      bar.setAttribute("y", 16 - height);
      bar.setAttribute("width", 1.6);
      bar.setAttribute("height", height);
      picture.append(bar);
    });
    return picture;
  } };
}

function handoverTable(run) {
  const { lives, size } = run.history;
  const pairs = new Map();
  for (let i = 0; i < lives.size; i++) {
    if (lives.died[i] < size && lives.blocks[i] > 0
      && lives.freedBy[i] !== lives.thread[i] && lives.freedBy[i] !== UNRECORDED) {
      const key = lives.thread[i] + " " + lives.freedBy[i];
      const pair = pairs.get(key) || { from: lives.thread[i], to: lives.freedBy[i], blocks: 0, bytes: 0 };
      pair.blocks += lives.blocks[i];
      pair.bytes += lives.bytes[i];
      pairs.set(key, pair);
    }
  }
  return pairs.size === 0 ? element("p", {}, "Each thread freed only blocks of its own.")
    : sortableTable("Blocks freed by other threads", [
      { title: "Allocated by", value: (row) => nameOf(run, "thread", row.from), wide: true },
      { title: "Freed by", value: (row) => nameOf(run, "thread", row.to), wide: true },
      { title: "Blocks", value: (row) => row.blocks, text: (row) => countText(row.blocks), bar: true },
      { title: "Bytes", value: (row) => row.bytes, text: (row) => bytesText(row.bytes) },
    ], [...pairs.values()], 2, 20);
}

function waitTable(run) {
  const { kind, stream, awaited, seconds, size } = run.history;
  const pairs = new Map();
  for (let i = 0; i < size; i++) {
    if (kind[i] === KIND.streamWaited) {
      const key = stream[i] * 65536 + awaited[i];
      const pair = pairs.get(key) || { stream: stream[i], awaited: awaited[i], times: 0, first: seconds[i], last: 0 };
      pair.times++;
      pair.last = seconds[i];
      pairs.set(key, pair);
    }
  }
  return pairs.size === 0 ? element("p", {}, "No stream waited for another one.")
    : sortableTable("Waits between streams", [
      { title: "Stream", value: (row) => nameOf(run, "stream", row.stream), wide: true },
      { title: "Waited for", value: (row) => nameOf(run, "stream", row.awaited), wide: true },
      { title: "Times", value: (row) => row.times, text: (row) => countText(row.times), bar: true },
      { title: "First", value: (row) => row.first, text: (row) => secondsText(row.first) },
      { title: "Last", value: (row) => row.last, text: (row) => secondsText(row.last) },
    ], [...pairs.values()], 2, 20);
}

/** Frees that waited for other streams, and for how long. */
function deferredLine(run) {
  const { kind, address, seconds, size } = run.history;
  const open = new Map();
  let deferred = 0, longest = 0;
  for (let i = 0; i < size; i++) {
    if (kind[i] === KIND.freeDeferred) {
      deferred++;
      open.set(address[i], seconds[i]);
    } else if (kind[i] === KIND.freeCompleted && open.has(address[i])) {
      longest = Math.max(longest, seconds[i] - open.get(address[i]));
      open.delete(address[i]);
    }
  }
  open.forEach((since) => longest = Math.max(longest, run.endSeconds - since));
  return element("p", {}, deferred === 0 ? "No free had to wait for another stream."
    : counted(deferred, "free") + " waited for other streams, for up to " + secondsText(longest) + "; "
      + countText(open.size) + " of them still wait" + (open.size === 1 ? "s." : "."));
}
