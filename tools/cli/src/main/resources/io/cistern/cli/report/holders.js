// Which code holds what: live blocks by site, call stack, thread, stream, allocator or scope.

const HOLDER_CHOICES = [["site", "allocation site"], ["stack", "call stack"], ["thread", "thread"],
  ["stream", "stream"], ["allocator", "allocator or pool"], ["scope", "scope"]];
const BLOCK_FIELDS = { site: "site", stack: "stack", thread: "threadNumber", stream: "streamNumber",
  allocator: "owner", scope: "scopeNumber" };

function holdersSection(run) {
  if (run.liveBlocks.length === 0 && !run.history) {
    return section("holders", "Who holds what", element("p", {}, "No block is live."));
  }
  const place = element("div", {});
  const moments = momentsOf(run);
  const first = run.refusal && !run.isOfRefusal ? moments.at(-1) : run.isOfPyTorch ? moments[0] : moments.find((each) => each.isRefusal) ?? moments.at(-1);
  const shown = { by: "site", when: first?.when };
  const show = (change) => {
    Object.assign(shown, change);
    const moment = moments.find((each) => each.when === shown.when);
    const rows = moment ? holdersAt(run, shown.by, moment) : holdersNow(run, shown.by);
    place.replaceChildren(rows.length === 0 ? element("p", {}, "No block is live.")
      : holderTable(run, shown.by, rows, moment));
  };
  show({});
  return section("holders", "Who holds what", element("div", { class: "tools" }, moments.length > 0
    ? choice("When", moments.map((each) => [each.when, each.text]), shown.when, (when) => show({ when })) : null,
  choice("By", run.known(HOLDER_CHOICES), shown.by, (by) => show({ by }))), place);
}

/**
 * The moments to choose from: the peak, which is that of fit, the last refusal unless it is the peak, and the end. Each
 * has the last event before it on a device.
 */
function momentsOf(run) {
  if (!run.history) {
    return [];
  }
  const refused = run.refusal;
  const { seconds, size, marks } = run.history;
  const request = (mark) => "refusal of " + bytesText(mark.event.byteSize);
  const peaks = new Map(run.devices.map(({ device }) => [device, requestedPeak(run, device)]));
  const [peak] = peaks.values();
  const refusedPeak = peaks.size === 1 ? marks.find(({ at, event }) => at === peak && event.event === "outOfMemory") : null;
  const moments = [{ when: "end", text: "end", isEnd: true, before: () => size - 1 }];
  if (refused && refused !== refusedPeak) {
    moments.unshift({ when: "refusal", text: request(refused) + ", at " + secondsText(refused.seconds),
      isRefusal: true, before: () => refused.at });
  }
  if (peaks.size > 0) {
    moments.unshift({ when: "peak", isRefusal: refused && refused === refusedPeak,
      before: (device) => peaks.get(device) ?? size - 1,
      text: peaks.size > 1 ? "peak of each device" : "peak" + (refusedPeak ? ": " + request(refusedPeak) : "") + ", at "
        + secondsText(peak < 0 ? run.firstSeconds : seconds[peak]) });
  }
  return moments;
}

/** Before a link leads here from a refusal. */
function showHoldersAtRefusal() {
  const chosen = document.querySelector("#holders select");
  if (chosen?.querySelector("[value=peak]")) {
    chosen.value = chosen.querySelector("[value=refusal]") ? "refusal" : "peak";
    chosen.dispatchEvent(new Event("change"));
  }
}

function holderTable(run, by, rows, moment) {
  const total = sum(rows, (row) => row.bytes);
  const columns = [
    { title: by === "site" || by === "stack" ? "Site" : "Name", wide: true, value: (row) => row.name,
      text: (row) => by === "site" || by === "stack" ? stackDetails(run, row) : row.name },
    { title: "Bytes", value: (row) => row.bytes, text: (row) => bytesText(row.bytes), bar: true },
    { title: "Share", value: (row) => row.bytes / total, text: (row) => percentText(row.bytes, total) },
    { title: "Blocks", value: (row) => row.blocks, text: (row) => countText(row.blocks) },
  ];
  if (rows.some((row) => row.oldest >= 0)) {
    columns.push({ title: "Oldest", value: (row) => row.oldest, text: (row) => row.oldest < 0 ? "unknown"
      : secondsText(row.oldest) });
  }
  if (run.history) {
    columns.push(
      { title: "Allocated", value: (row) => row.made, text: (row) => row.name === WAITING ? "" : countText(row.made) },
      { title: "Freed", value: (row) => row.freed, text: (row) => row.name === WAITING ? "" : countText(row.freed) });
  }
  return sortableTable(counted(sum(rows, (row) => row.blocks), "block") + ", " + bytesText(total)
    + (moment ? " at the " + moment.text : "") + (run.history ? "; allocations and frees of the whole recording" : ""), columns, rows, 1);
}

function holderRows(run, by) {
  const rows = new Map();
  return { rows, add: (number, bytes, oldest, stack) => {
    if (!rows.has(number)) {
      rows.set(number, { number, name: nameOf(run, by, number), bytes: 0, blocks: 0, oldest: -1, made: 0, freed: 0,
        stacks: new Map() });
    }
    const row = rows.get(number);
    row.bytes += bytes;
    row.blocks++;
    row.oldest = Math.max(row.oldest, oldest);
    row.stacks.set(stack, (row.stacks.get(stack) || 0) + bytes);
  } };
}

function holdersNow(run, by) {
  const { rows, add } = holderRows(run, by);
  run.liveBlocks.forEach((block) => add(block[BLOCK_FIELDS[by]], block.requestedBytes,
    (block.ageNanos ?? -1e9) / 1e9, block.stack));
  return [...rows.values()];
}

/** At one of the moments. */
function holdersAt(run, by, { before, isEnd }) {
  const { lives, seconds, size, endSeconds } = run.history;
  const { rows, add } = holderRows(run, by);
  for (let i = 0; i < lives.size; i++) {
    const last = before(lives.device[i]);
    if (lives.blocks[i] > 0 && lives.born[i] <= last && lives.died[i] > last) {
      add(lives[by][i], lives.bytes[i], lives.born[i] >= 0
        ? (isEnd ? endSeconds : seconds[last]) - seconds[lives.born[i]] : isEnd ? lives.age[i] : -1, lives.stack[i]);
    }
  }
  const devices = run.devices.length > 0 ? run.devices.map(({ device }) => device) : [undefined];
  const waiting = devices.map((device) => waitingAt(run, before(device), device));
  if (waiting.some(({ blocks }) => blocks > 0)) {
    rows.set(WAITING, { name: WAITING, bytes: sum(waiting, ({ bytes }) => bytes),
      blocks: sum(waiting, ({ blocks }) => blocks), oldest: -1, made: 0, freed: 0,
      stacks: new Map([[run.stacks.of(""), 0]]) });
  }
  for (let i = 0; i < lives.size; i++) {
    const row = rows.get(lives[by][i]);
    if (row) {
      row.made += lives.born[i] >= 0 ? lives.blocks[i] : 0;
      row.freed += lives.died[i] < size ? lives.blocks[i] : 0;
    }
  }
  return [...rows.values()];
}

/** The site; opened, the call stacks that lead to it, the one with the most bytes first. */
function stackDetails(run, row) {
  const stacks = [...row.stacks].sort((a, b) => b[1] - a[1]).slice(0, 5);
  if (run.stackLines(stacks[0][0]).length < 2) {
    return row.name;
  }
  return element("details", {}, element("summary", {}, row.name), stacks.map(([stack, bytes]) =>
    element("div", { class: "stack" }, row.stacks.size > 1 ? element("strong", {}, bytesText(bytes)) : null,
      element("ol", {}, run.stackLines(stack).map((line) => element("li", {}, line))))));
}
