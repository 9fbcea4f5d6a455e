// The first section: the moment, what stands out, devices and allocators.

const SECTION_TITLES = { timeline: "Memory over time", segments: "Map of segments", holders: "Who holds what",
  fragmentation: "Fragmentation and idle memory", traffic: "Threads and streams", "out-of-memory": "Out of memory" };
const GRADE_WORDS = { bad: "Problem", warn: "Warning", note: "Note" };

function summarySection(run) {
  return section("summary", "Summary", momentLine(run), explained("block", "live", "requested", "reserved", "idle",
    "segment", "stream", "pool", "allocation site", "stranded", "fragmented"), findingList(run, findingsOf(run)),
  ...deviceMeters(run), ...peakLines(run), allocatorTable(run), settingsDetails(run));
}

function momentLine(run) {
  const { snapshot, history } = run;
  const runtime = snapshot.runtime || {};
  const parts = [["Cistern ", runtime.cistern], ["Java ", runtime.java], ["", runtime.driver],
    ["process ", runtime.processId]].filter((part) => part[1] != null).map((part) => part.join(""));
  const moment = snapshot.takenAt ? "Taken " + snapshot.takenAt.replace(/(\.\d+)?Z$/, " UTC").replace("T", " ") + ", " : "";
  return element("p", { class: "faint" }, moment + snapshot.reason + ". " + shownMoment(run)
    + (parts.length > 0 ? parts.join(", ") + ". " : "")
    + (history ? counted(snapshot.note ? history.recorded.capacity : history.size, "event") + " in "
      + secondsText(run.recordedSeconds) + (snapshot.note ? "; " + snapshot.note : "")
      + ". Times count from the beginning of the recording, ages back from " + (run.isOfRefusal ? "the refusal" : "the snapshot")
    + "." : "No history. Ages count back from the snapshot."));
}

/** Which moment the findings, the map and the tables of idle memory show, if a request was refused. */
function shownMoment(run) {
  if (refusedBytes(run) === null) {
    return "";
  }
  return run.isOfRefusal ? "Segments and idle memory are shown as they were at the refusal, at "
    + secondsText(run.momentSeconds) + ". "
    : "Segments and idle memory are shown as they were at the snapshot, after the refusal: memory may have been freed. ";
}

function findingList(run, findings) {
  if (findings.length === 0) {
    const why = whyNoLeaks(run);
    return element("p", { class: "finding fine" }, element("strong", {}, "Nothing stands out. "),
      "Idle memory is not fragmented"
      + (run.history ? ", no stream keeps memory that it does not use. " : ". ")
      + (run.history ? (why ? "Leaks can't be seen: " + why : "No site grew all the time in these "
        + secondsText(run.recordedSeconds)) + "." : "No history, so leaks and refusals can't be seen."));
  }
  return element("ol", { id: "findings", "aria-label": "What stands out" }, findings.map((finding) =>
    element("li", { class: "finding " + finding.grade },
      element("span", { class: "grade" }, GRADE_WORDS[finding.grade]),
      element("strong", {}, finding.title),
      element("p", {}, finding.text),
      finding.advice ? element("p", { class: "advice" }, finding.advice) : null,
      element("a", { href: "#" + finding.where }, "See: " + SECTION_TITLES[finding.where]))));
}

function deviceMeters(run) {
  return run.devices.filter((device) => device.totalBytes > 0).map((device) => {
    const total = device.totalBytes;
    const inSegments = (segments) => sum(segments, (each) => each.device === device.device && each.reported !== false
      ? each.byteSize : 0);
    const isChanged = run.segments !== run.snapshotSegments;
    const reserved = !isChanged && sum(run.allocators.filter((each) => each.device === device.device),
      (each) => (each.figures || {})["reserved_bytes.all.current"] || 0) || inSegments(run.segments);
    const live = sum(run.liveBlocks.filter((block) => block.segment.device === device.device),
      (block) => block.byteSize);
    const free = (run.isOfRefusal && run.outOfMemory?.device === device.device ? run.outOfMemory.freeBytes : null)
      ?? device.freeBytes + (isChanged ? inSegments(run.snapshotSegments) - reserved : 0);
    const others = Math.max(0, total - free - Math.max(reserved, live));
    const parts = [["live", live, "live"], ["idle", Math.max(0, reserved - live), "reserved, not live"],
      ["others", others, "others"], ["free", free, "free"]];
    return element("figure", { class: "meter" },
      element("figcaption", {}, element("strong", {}, "Device " + device.device + ": " + device.name), " "
        + bytesText(total)),
      element("div", { class: "parts", role: "img", "aria-label": parts.map(([, bytes, word]) => word + " "
        + bytesText(bytes)).join(", ") }, parts.map(([name, bytes]) =>
        element("span", { class: "part " + name, style: "flex-grow:" + Math.max(0, bytes / total) }))),
      element("ul", { class: "keys" }, parts.map(([name, bytes, word]) => element("li", {},
        element("span", { class: "key part " + name }), word + " " + bytesText(bytes)))));
  });
}

/**
 * What was live on a device, or freed but waiting for another stream, after an event, and from where; without an event,
 * when that was most.
 */
function peakOf(run, device, at = run.history.peaks.get(device) ?? peakEvent(run, device)) {
  const { lives, seconds } = run.history;
  const sites = new Map();
  for (let i = 0; i < lives.size; i++) {
    if (lives.device[i] === device && lives.blocks[i] > 0 && lives.born[i] <= at && lives.died[i] > at) {
      sites.set(lives.site[i], (sites.get(lives.site[i]) || 0) + lives.bytes[i]);
    }
  }
  return { bytes: sum(sites.values(), (bytes) => bytes) + waitingAt(run, at, device).bytes,
    seconds: at < 0 ? 0 : seconds[at], at,
    sites: [...sites].map(([site, bytes]) => [run.siteText(site), bytes]).sort((a, b) => b[1] - a[1]) };
}

/** The event after which a device requested most, a refused request included; -1 before the first. */
function requestedPeak(run, device) {
  const { refusedPeaks, peaks } = run.history;
  return refusedPeaks.get(device) ?? peaks.get(device) ?? peakEvent(run, device, true);
}

function peakEvent(run, device, isWithRefused = false) {
  const { history } = run;
  let now = 0, peak = 0, at = -1;
  for (let i = 0; i < history.size; i++) {
    if (history.device[i] === device) {
      const life = history.life[i];
      now += waitingChange(history, i);
      now += life < 0 ? 0 : (history.kind[i] === KIND.allocated ? 1 : -1) * history.lives.bytes[life];
    }
    const refused = isWithRefused && history.kind[i] === KIND.outOfMemory && history.device[i] === device
      ? history.bytes[i] : 0;
    if (now + refused > peak) {
      peak = now + refused;
      at = i;
    }
  }
  return at;
}

function peakLines(run) {
  return run.history ? run.devices.map(({ device }) => peakLine(run, device)) : [];
}

/** The moment is that of fit: the peak of requested bytes. */
function peakLine(run, device) {
  const peak = peakOf(run, device, requestedPeak(run, device));
  const waiting = waitingAt(run, peak.at, device).bytes;
  const refused = run.history.marks.find(({ at, event }) => at === peak.at && event.event === "outOfMemory")?.event;
  const parts = waiting > 0 ? [[WAITING, waiting], ...peak.sites] : peak.sites;
  return element("p", {}, "Live bytes" + (run.devices.length > 1 ? " of device " + device : "")
    + (refused ? ", with the refused request of " + bytesText(refused.byteSize) + "," : "") + " peaked at "
    + bytesText(peak.bytes + (refused ? refused.byteSize : 0)) + ", at " + secondsText(peak.seconds)
    + (refused ? ". Of the " + bytesText(peak.bytes) + " without it, " : ": ")
    + parts.slice(0, 3).map(([site, bytes]) => percentText(bytes, peak.bytes)
      + (site === WAITING ? " " + site : site === NO_STACK ? " without a call stack" : " from " + site)).join(", ") + ".");
}

function allocatorTable(run) {
  if (run.allocators.length === 0) {
    return null;
  }
  const figure = (name) => (row) => (row.figures || {})[name] ?? 0;
  const shown = (name) => (row) => (row.figures || {})[name] == null ? "unknown" : bytesText(row.figures[name]);
  const column = (title, name, bar) => ({ title, figure: name, value: figure(name), text: shown(name), bar });
  return element("div", {}, sortableTable("Allocators and pools, at the snapshot", [
    { title: "Allocator", value: (row) => allocatorText(row) + (row.current ? " (current)" : ""), wide: true },
    { title: "Device", value: (row) => row.device },
    column("Requested", "requested_bytes.all.current"),
    column("Reserved", "reserved_bytes.all.current", true),
    column("Reserved at most", "reserved_bytes.all.peak"),
    column("Largest free", "largest_free_block"),
  ].filter((each) => !each.figure || run.allocators.some((row) => (row.figures || {})[each.figure] != null)),
  run.allocators, 2), element("details", {}, element("summary", {}, "All figures"),
    run.allocators.map((allocator) => figureTables(run, allocator))));
}

/** An allocator, and the pool that it serves unless its name says that. */
function allocatorText({ name, pool }) {
  return pool && !name.includes(pool) ? "pool " + pool + ", " + name : name;
}

/** The figures of an allocator on a device, but for those that are 0 on all devices. */
function figureTables(run, allocator) {
  const figures = Object.entries(allocator.figures || {});
  const everywhere = run.allocators.filter((each) => each.name === allocator.name && each.pool === allocator.pool);
  const shown = figures.filter(([name]) => everywhere.some((each) => (each.figures || {})[name]));
  const left = figures.length - shown.length;
  return [sortableTable(allocatorText(allocator) + ", device " + allocator.device,
    [{ title: "Figure", value: (row) => row[0], wide: true },
      { title: "Value", value: (row) => row[1], text: (row) => row[0].includes("bytes") || row[0].includes("block")
        && row[1] > 4096 ? countText(row[1]) + " (" + bytesText(row[1]) + ")" : countText(row[1]) }], shown, 0, 200),
  left > 0 ? element("p", { class: "faint" }, counted(left, "figure") + " left out: 0 on all devices.") : null];
}

function settingsDetails(run) {
  const settings = Object.entries(run.snapshot.settings || {});
  return settings.length === 0 ? null : element("details", {}, element("summary", {}, "Settings"),
    element("dl", {}, settings.map(([name, value]) => [element("dt", {}, name), element("dd", {}, String(value))])));
}
