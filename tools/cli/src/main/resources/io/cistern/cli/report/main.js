// Reads the snapshots and builds the page; builds it again for another run or device, or when colours change.

const sources = [...document.querySelectorAll("script.snapshot")].map((script, index) => {
  const snapshot = JSON.parse(script.textContent);
  script.remove();
  return { snapshot, name: script.dataset.name, index };
});
const names = sources.map((source) => source.name);
for (const source of sources) {
  if (names.indexOf(source.name) !== names.lastIndexOf(source.name)) {
    source.name += " (" + (source.index + 1) + ")";
  }
}
const grown = document.getElementById("growth").dataset.text;
const state = opened();
const charts = [];
const maps = [];

/** The last run in which a request was refused, on its device; else the last run that is not a replay. */
function opened() {
  const recorded = sources.filter((source) => !isReplay(source));
  const { index, snapshot } = recorded.findLast((source) => refusedDevice(source.snapshot) !== null)
    ?? recorded.at(-1) ?? sources[0];
  return { index, device: devicesOf([{ snapshot }]).length > 1 ? refusedDevice(snapshot) : null, isOfSnapshot: false };
}

/** The device of the last refused request; null if none was refused. */
function refusedDevice({ outOfMemory, history }) {
  const refused = (history?.events ?? []).filter(({ event }) => event === "outOfMemory");
  return (outOfMemory ?? refused.sort((a, b) => a.nanos - b.nanos).at(-1))?.device ?? null;
}

/** What tests and the curious may look at in the browser's console. */
window.cisternReport = { charts, maps, state, change };

function build() {
  [...charts, ...maps].forEach((each) => each.remove());
  charts.length = maps.length = 0;
  const { snapshot, name } = sources[state.index];
  const devices = (snapshot.devices || []).map((each) => each.device);
  if (!devices.includes(state.device)) {
    state.device = null;
  }
  const run = new Run(snapshot, name, state.device, state.isOfSnapshot);
  document.title = name + " \u2013 Cistern memory report";
  document.getElementById("choice").replaceChildren(
    sources.length > 1 ? choice("Run", sources.map((each) => [each.index, each.name]), state.index,
      (index) => change({ index: Number(index) })) : element("span", { class: "runs" }, name),
    ...(devices.length > 1 ? [choice("Device", [["", "all"], ...devices.map((each) => [each, "device " + each])],
      state.device ?? "", (device) => change({ device: device === "" ? null : Number(device) }))] : []),
    ...(run.refusal && run.hasChangedSince(run.refusal.at) ? [choice("Moment", [["false", "refusal, at "
      + secondsText(run.refusal.seconds)], ["true", "snapshot"]], state.isOfSnapshot,
    (isOfSnapshot) => change({ isOfSnapshot: isOfSnapshot === "true" }))] : []));
  const sections = [...fitSections(sources), ...grownSections(), summarySection(run)];
  if (sources.length > 1) {
    sections.push(comparisonSection(run, state.device == null ? devicesOf(sources) : [state.device], charts));
  }
  sections.push(timelineSection(run, charts), segmentsSection(run, maps), holdersSection(run),
    fragmentationSection(run, charts), trafficSection(run), outOfMemorySection(run));
  document.getElementById("page").replaceChildren(...sections);
  document.getElementById("contents").replaceChildren(...sections.map((each) =>
    element("li", {}, element("a", { href: "#" + each.id }, each.querySelector("h2").textContent))));
}

/** The devices of all runs. */
function devicesOf(all) {
  return [...new Set(all.flatMap(({ snapshot }) => (snapshot.devices || []).map(({ device }) => device)))]
    .sort((a, b) => a - b);
}

/** How the program fits, if somebody asked. */
function fitSections(all) {
  const asked = all.filter((each) => each.snapshot.fit);
  return asked.map((each, index) => section(index > 0 ? "fit-" + (index + 1) : "fit",
    asked.length > 1 ? "Would it fit? " + each.name : "Would it fit?",
    each.snapshot.fit.flatMap(({ verdicts, reasons }) => [
      ...verdicts.map((verdict) => element("p", {}, element("strong", {}, verdict))),
      ...reasons.map((reason) => element("p", {}, reason))]), each.snapshot.fit.map(factsOf)));
}

/** What the verdicts about a device rest on. */
function factsOf({ heading, facts, columns, rows, notes }) {
  const titles = columns[0].map((_, column) => columns.map((line) => line[column]).join(" ").trim());
  return element("div", { class: "facts" }, element("p", { class: "faint" }, heading),
    element("dl", {}, facts.map(({ name, text }) => [name ? element("dt", {}, name) : null, element("dd", {}, text)])),
    element("div", { class: "table" }, element("table", { class: "figures" },
      element("thead", {}, element("tr", {}, titles.map((title, column) =>
        element("th", { scope: "col", class: column > 0 ? "number" : null }, title)))),
      element("tbody", {}, rows.map(([allocator, ...cells]) => element("tr", {}, element("th", { scope: "row" }, allocator),
        cells.map((cell, column) => element("td", { class: "number", "data-title": titles[column + 1] }, cell))))))),
    element("ul", {}, notes.map((note) => element("li", {}, note))));
}

/** What grew from the first file to the second, if there are two. */
function grownSections() {
  const end = grown.indexOf("\n");
  return grown === "" ? [] : [section("grown", "What grew", element("p", {}, element("strong", {}, grown.slice(0, end))),
    element("pre", {}, grown.slice(end + 1).trimEnd()))];
}

function change(changes) {
  Object.assign(state, changes);
  build();
  document.querySelector("#choice select")?.focus();
}

build();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", build);
