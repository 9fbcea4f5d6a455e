// The moment at which a request was refused: the request, the memory then, the steps that were tried.

function outOfMemorySection(run) {
  const made = section("out-of-memory", "Out of memory");
  const recorded = run.history ? refusalsOf(run) : [];
  if (!run.outOfMemory && recorded.length === 0) {
    made.append(element("p", {}, run.history ? "No request was refused in the recording."
      : "No history, so a refusal can't be seen."));
    return made;
  }
  made.append(element("p", {}, element("a", { href: "#holders", onclick: showHoldersAtRefusal }, "Who held the memory then")), explained("step"));
  if (run.outOfMemory) {
    made.append(...refusal(run.outOfMemory, run));
    recorded.pop(); // The last one is that of the report.
  }
  made.append(...recorded.slice(-20).reverse().map((each) => element("div", {},
    element("h3", {}, "At " + secondsText(each.seconds) + ": " + bytesText(each.event.byteSize) + " for "
      + theStream(each.event.stream) + " on device " + each.event.device),
    stepTable(each.steps))));
  return made;
}

/** Refusals of the recording, each with the steps of its thread that came before. */
function refusalsOf(run) {
  const { marks, reclaims, thread } = run.history;
  let from = -1;
  return marks.filter((mark) => mark.event.event === "outOfMemory").map((mark) => {
    const steps = reclaims.filter((each) => each.at > from && each.at < mark.at && thread[each.at] === thread[mark.at]
      && each.event.byteSize === mark.event.byteSize)
      .map(({ event }) => ({ step: event.step, byteSize: event.gaveBytes, nanos: event.tookNanos }));
    from = mark.at;
    return { ...mark, steps };
  });
}

function refusal(report, run) {
  const free = report.freeBytes == null ? "" : " The device had " + bytesText(report.freeBytes) + " of "
    + bytesText(report.totalBytes) + " free.";
  return [
    element("p", {}, element("strong", {}, bytesText(report.byteSize) + " were asked for"), " ("
      + countText(report.byteSize) + " bytes) on device " + report.device + " for " + theStream(report.stream) + "."
      + free),
    ...(report.advice || []).map((text) => element("p", { class: "advice" }, text)),
    element("h3", {}, "What was tried"), stepTable(report.steps || []),
    element("h3", {}, "Memory then"), refusedAllocators(report), ...processLines(report), unusableTable(report),
    report.text ? element("details", {}, element("summary", {}, "The report as text"), element("pre", {}, report.text))
      : null,
  ].filter((each) => each != null);
}

function stepTable(steps) {
  if (steps.length === 0) {
    return element("p", {}, "No reclaim steps were recorded.");
  }
  const numbered = steps.map((step, index) => ({ ...step, index: index + 1 }));
  return sortableTable(counted(steps.length, "step") + " freed " + bytesText(sum(steps, (step) => step.byteSize))
    + " in " + secondsText(sum(steps, (step) => step.nanos) / 1e9), [
    { title: "", value: (row) => String(row.index) },
    { title: "Step", value: (row) => row.step, wide: true },
    { title: "Freed", value: (row) => row.byteSize, text: (row) => bytesText(row.byteSize), bar: true },
    { title: "Took", value: (row) => row.nanos, text: (row) => secondsText(row.nanos / 1e9), bar: true },
  ], numbered, 0);
}

function refusedAllocators(report) {
  const size = (title, name, bar) => ({ title, bar, value: (row) => row[name] ?? 0,
    text: (row) => row[name] == null ? "unknown" : bytesText(row[name]) });
  const allocators = report.allocators || [];
  const streams = allocators.flatMap((each) => (each.streams || []).map((stream) => ({
    allocator: allocatorText(each), ...stream })));
  return element("div", {},
    sortableTable("Allocators and pools of this process", [
      { title: "Allocator", value: allocatorText, wide: true },
      size("Reserved", "reservedBytes", true), size("Requested", "requestedBytes"),
      { title: "Live blocks", value: (row) => row.liveBlocks, text: (row) => countText(row.liveBlocks) },
      size("Largest free", "largestFreeBytes"),
    ], allocators, 1),
    streams.length > 1 ? sortableTable("Their streams", [
      { title: "Allocator", value: (row) => row.allocator, wide: true },
      { title: "Stream", value: (row) => streamText(row.stream), wide: true },
      size("Live", "liveBytes", true), size("Largest free", "largestFreeBytes"),
    ], streams, 2) : null);
}

function unusableTable(report) {
  const unusable = report.unusable || [];
  return unusable.length === 0 ? null : sortableTable("Memory that could not serve the request", [
    { title: "Why", value: (row) => row.reason, wide: true },
    { title: "Held by", value: (row) => row.holder, wide: true },
    { title: "Bytes", value: (row) => row.byteSize, text: (row) => bytesText(row.byteSize), bar: true },
    { title: "What would help", value: (row) => row.remedy, wide: true },
  ], unusable, 2);
}

function processLines(report) {
  return (report.processes || []).map((each) => element("p", {}, "Process " + each.processId + " held "
    + (each.byteSize == null ? "memory of unknown size." : bytesText(each.byteSize) + ".")));
}
