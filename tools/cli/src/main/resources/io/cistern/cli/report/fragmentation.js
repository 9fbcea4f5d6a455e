// What reserved memory is used for, over time and at the moment shown.

function fragmentationSection(run, charts) {
  const made = section("fragmentation", "Fragmentation and idle memory", explained("fragmented", "lost to rounding", "piece",
    "inactive for"));
  if (run.history) {
    const { names, curves } = usageCurves(run);
    const palette = colours();
    const fixed = [palette.live, palette.other, palette.waiting];
    const areas = names.map((name, index) => ({ name, curve: curves[index],
      colour: fixed[index] || palette.groups[(index + 1) % palette.groups.length] }));
    const chart = new MemoryChart("What reserved memory is used for", timesOf(run.history), areas, [], marksOf(run));
    charts.push(chart);
    made.append(element("p", { class: "faint" }, "The top edge is what is reserved. Idle memory serves the stream of its"
      + " segment alone. Rounding before the snapshot is estimated from the blocks that are live in it."), chart.element);
  }
  const memory = memoryByStream(run);
  if (memory.length === 0) {
    made.append(element("p", { class: "note" }, "The allocator reports no segments."));
    return made;
  }
  made.append(streamTable(run, memory), pieceTable(run));
  return made;
}

function streamTable(run, memory) {
  const lastUse = run.lastUse(run.momentSeconds);
  const rest = (row) => row.stream == null ? -1 : restOf(run, row.stream, lastUse) ?? -1;
  const size = (title, name, bar) => ({ title, value: (row) => row[name], text: (row) => bytesText(row[name]), bar });
  const several = (field) => new Set(memory.map((row) => row[field])).size > 1;
  const some = (name) => memory.some((row) => row[name] > 0);
  const columns = [
    { title: "Stream", value: (row) => streamText(row.stream), wide: true },
    several("allocator") ? { title: "Allocator", value: (row) => row.allocator, wide: true } : null,
    several("device") ? { title: "Device", value: (row) => row.device } : null,
    size("Reserved", "reserved"), size("Live", "live"), some("waiting") ? size("Waiting", "waiting") : null,
    some("cached") ? size("In caches", "cached") : null,
    { ...size("Idle", "idle", true), text: (row) => [bytesText(row.idle),
      element("span", { class: "share" }, " " + percentText(row.idle, row.reserved)),
      element("div", { class: "share" }, bytesText(row.split.bytes) + " fragmented")] },
    { title: "Pieces", value: (row) => row.pieces, text: (row) => countText(row.pieces) },
    size("Largest", "largest"),
    { title: "Inactive for", value: rest, text: (row) => rest(row) < 0 ? "unknown" : secondsText(rest(row)) },
  ].filter((column) => column !== null);
  return sortableTable("Segments by stream, " + run.moment, columns, memory, columns.findIndex((each) => each.title === "Idle"));
}

/** Idle pieces by powers of two. */
function pieceTable(run) {
  const classes = new Map();
  for (const bytes of idlePieces(run)) {
    const power = Math.floor(Math.log2(bytes));
    const entry = classes.get(power) || { power, pieces: 0, bytes: 0 };
    entry.pieces++;
    entry.bytes += bytes;
    classes.set(power, entry);
  }
  const rows = [...classes.values()];
  return rows.length === 0 ? element("p", {}, "No reserved memory is idle.") : sortableTable("Idle pieces by size, " + run.moment, [
    { title: "From", value: (row) => row.power, text: (row) => bytesText(2 ** row.power) },
    { title: "Pieces", value: (row) => row.pieces, text: (row) => countText(row.pieces) },
    { title: "Bytes", value: (row) => row.bytes, text: (row) => bytesText(row.bytes), bar: true },
  ], rows, 0);
}
