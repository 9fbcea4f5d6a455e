// Several runs side by side: their figures, and their curves over each other.

const isReplay = (run) => (run.snapshot.reason || "").startsWith("A replay with ");

/** Devices are compared one by one: a replay is of one. */
function comparisonSection(shown, devices, charts) {
  const replays = sources.filter(isReplay);
  const made = section("comparison", "Runs side by side", replays.length === 0 ? null
    : element("p", { class: "faint" }, replays.map(({ name, snapshot: { reason } }) => name + ": "
      + reason[0].toLowerCase() + reason.slice(1)).join("; ") + "."));
  for (const device of devices) {
    const runs = sources.filter((each) => devicesOf([each]).includes(device)).map((each) =>
      each.snapshot === shown.snapshot && devicesOf([each]).length === 1 ? shown
        : new Run(each.snapshot, each.name, device, state.isOfSnapshot));
    made.append(figureTable(runs, device, devices.length > 1 ? "Device " + device + ", figures" : "Figures"));
    const withHistory = runs.filter((run) => run.history);
    if (withHistory.length > 1) {
      const chart = overlaid(withHistory);
      charts.push(chart);
      made.append(chart.element);
    }
  }
  return made;
}

/**
 * Snapshots of a running program are of one moment; a recorded one may have ended in a refusal, and its replay before.
 * The last column of a row says whether it is shown of such moments alone.
 */
function figureTable(runs, device, title) {
  const isOneMoment = runs.every((run) => run.snapshot.takenAt);
  const peak = (run) => run.history ? peakOf(run, device).bytes : null;
  const most = (curve) => curve.reduce((a, b) => Math.max(a, b), 0);
  const reservedPeak = (run) => run.history ? most(run.reserved) : null;
  const ofKind = (kind) => (run) => run.history ? run.history.kind.reduce((n, each) => n + (each === kind ? 1 : 0), 0)
    : null;
  const idle = (run) => sum(memoryByStream(run), (memory) => memory.idle + memory.cached);
  const moment = [...new Set(runs.map((run) => run.moment))].join(" or ");
  const rows = [
    ["Allocator", (run) => run.allocators.filter((each) => each.current).map((each) => each.name).join(", ")
      || run.owners.texts.slice(0, 3).join(", ") || "?", null],
    ["Recorded", (run) => run.history && !isReplay(run) ? secondsText(run.recordedSeconds) : null, String],
    ["Requested " + moment, (run) => run.requestedBytes, bytesText, true],
    ["Live at most", peak, bytesText],
    ["Reserved " + moment, (run) => run.reservedBytes, bytesText, true],
    ["Reserved at most", reservedPeak, bytesText],
    ["Reserved / requested, at most", (run) => run.history && peak(run) > 0 ? reservedPeak(run) / peak(run) : null,
      (value) => value.toFixed(3)],
    ["Idle " + moment, idle, bytesText, true],
    ["Largest idle piece", (run) => idlePieces(run)[0] || 0, bytesText, true],
    ["Allocations", ofKind(KIND.allocated), countText, true],
    ["Mean allocation", meanAllocation, secondsText, true],
    ["Segments acquired", ofKind(KIND.segmentAcquired), countText, true],
    ["Requests refused", (run) => run.history && !isReplay(run) ? countText(ofKind(KIND.outOfMemory)(run)) : null,
      String],
  ].filter(([, , , isOfOneMoment]) => isOneMoment || !isOfOneMoment).concat([
    ["What stands out", (run) => isReplay(run) ? null
      : findingsOf(run).map((finding) => finding.title).join("; ") || "nothing", null],
  ]);
  return element("div", { class: "table" }, element("table", { class: "figures" },
    element("caption", {}, title + "; percentages compare with the first run, those of a replay with what it replays"),
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Figure"),
      runs.map((run) => element("th", { scope: "col", class: "number" }, run.name)))),
    element("tbody", {}, rows.map(([title, value, text]) => {
      return element("tr", {}, element("th", { scope: "row" }, title), runs.map((run, index) => {
        const own = value(run);
        const base = isReplay(run) ? runs.findLastIndex((each, i) => i < index && !isReplay(each)) : 0;
        const first = base < 0 || base === index ? null : value(runs[base]);
        const change = typeof own === "number" && first > 0 ? Math.round((100 * (own - first)) / first) : 0;
        return element("td", { class: text ? "number" : "", "data-title": run.name }, own == null ? "\u2013" : text ? text(own) : own,
          change !== 0 ? element("span", { class: "change" }, " " + (change > 0 ? "+" : "\u2212")
            + countText(Math.abs(change)) + " %") : null);
      }));
    }))));
}

function meanAllocation(run) {
  if (!run.history) {
    return null;
  }
  const { took, kind, size } = run.history;
  let total = 0, count = 0;
  for (let i = 0; i < size; i++) {
    if (kind[i] === KIND.allocated) {
      total += took[i];
      count++;
    }
  }
  return total > 0 ? total / count : null;
}

/** Reserved as a line, requested as a dashed line in the same colour, over seconds since each run's begin. */
function overlaid(runs) {
  const palette = colours();
  const seconds = new Float64Array(sum(runs, (run) => run.history.size + 2));
  let filled = 0;
  for (const run of runs) {
    const times = timesOf(run.history);
    seconds.set(times, filled);
    filled += times.length;
  }
  seconds.sort();
  const lines = runs.flatMap((run, index) => {
    const times = timesOf(run.history);
    const colour = palette.groups[index % palette.groups.length];
    return [
      { name: run.name + ", reserved", colour, curve: resampled(seconds, times, run.reserved) },
      { name: run.name + ", requested", colour, dash: [6, 4], curve: resampled(seconds, times, requestedCurve(run)) },
    ];
  });
  return new MemoryChart("Reserved and requested bytes of all runs", seconds, [], lines, []);
}

/** A curve at other times; after its end it is not there. */
function resampled(seconds, times, curve) {
  const values = new Float64Array(seconds.length);
  let k = 0;
  for (let i = 0; i < seconds.length; i++) {
    while (k + 1 < times.length && times[k + 1] <= seconds[i]) {
      k++;
    }
    values[i] = seconds[i] > times[times.length - 1] ? NaN : curve[k];
  }
  return values;
}
