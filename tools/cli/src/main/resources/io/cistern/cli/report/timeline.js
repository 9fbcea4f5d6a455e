// Memory over time by site, thread, stream, allocator or scope.

const TIMELINE_CHOICES = [["site", "allocation site"], ["allocator", "allocator or pool"], ["stream", "stream"],
  ["thread", "thread"], ["scope", "scope"]];

function timelineSection(run, charts) {
  if (!run.history) {
    return section("timeline", "Memory over time", element("p", { class: "note" },
      "The snapshot has no history: start a recording to see memory over time."));
  }
  const place = element("div", {});
  const seconds = timesOf(run.history);
  const lines = tellsSegments(run) ? [{ name: "reserved", curve: run.reserved }] : [];
  const choices = run.known(TIMELINE_CHOICES);
  let chart = null;
  const show = (by) => {
    if (chart) {
      charts.splice(charts.indexOf(chart), 1);
      chart.remove();
    }
    chart = new MemoryChart("Live bytes by " + choices.find((each) => each[0] === by)[1], seconds,
      areasBy(run, by), lines, marksOf(run));
    charts.push(chart);
    place.replaceChildren(chart.element);
  };
  show("site");
  return section("timeline", "Memory over time",
    element("p", { class: "faint" }, "Requested bytes of live blocks, until the program frees them; " + (lines.length > 0
      ? "the line is what is reserved." : "what is reserved is not known, since no allocator reports its segments.")
      + " Where there are more events than pixels, each pixel shows the maximum of its interval. The curves end "
      + (isReplay(run) ? "where the replay does." : "at the snapshot.")),
    explained("mark", "scope"),
    choice("Stacked by", choices, "site", show), place);
}

function tellsSegments(run) {
  return run.segments.some((segment) => segment.reported !== false)
    || run.history.kind.includes(KIND.segmentAcquired);
}

function areasBy(run, by) {
  const { groups, others, curves } = stackedCurves(run, by);
  const areas = groups.map((group, index) => ({ name: nameOf(run, by, group.number), curve: curves[index] }));
  if (others > 0) {
    areas.push({ name: "others (" + countText(others) + ")", curve: curves[groups.length], isOther: true });
  }
  return areas;
}

/** The words for a group of lives or blocks. */
function nameOf(run, by, number) {
  if (number < 0) {
    return by === "scope" ? "not known" : "unknown";
  }
  switch (by) {
    case "site": return run.siteText(number);
    case "stack": return shortened(run.stackLines(number)[0]);
    case "thread": return run.threads.texts[number];
    case "stream": return streamText(run.streams.texts[number]);
    case "scope": return run.scopes.texts[number];
    default: return run.owners.texts[number];
  }
}
