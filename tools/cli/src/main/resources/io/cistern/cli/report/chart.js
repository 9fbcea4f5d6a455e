// A chart of bytes over time: areas on top of each other, lines, and marks; drawn by uPlot from typed arrays.

/** Pixels between marks, at least; zooming in makes room for those between. */
const MARK_DISTANCE = 40;
const BAD_MARK_DISTANCE = 5;
const MAX_LISTED_MARKS = 200;
/** A replay's mark where the recorded program was refused. */
const REFUSED_HERE = "the recorded program was refused here";
const BYTE_STEPS = Array.from({ length: 55 }, (_, power) => 2 ** power);

class MemoryChart {
  /**
   * @param label what it shows
   * @param seconds the times of all curves
   * @param areas {name, curve}, the lowest first; each curve contains those below it
   * @param lines {name, curve, dash}
   * @param marks {seconds, text, isBad}
   */
  constructor(label, seconds, areas, lines, marks) {
    this.label = label;
    this.areas = areas;
    this.lines = lines;
    this.marks = marks;
    // What is drawn first lies below, so the highest area comes first.
    this.curves = new Curves(seconds, [...[...areas].reverse(), ...lines].map((each) => each.curve));
    this.first = seconds[0];
    this.last = Math.max(seconds[seconds.length - 1], this.first + 1e-9);
    this.from = busyFrom(seconds, this.last);
    this.to = this.last;
    this.values = [];
    this.spoken = element("output", { class: "hidden", "aria-live": "polite" });
    this.moment = element("span", { class: "moment" });
    this.box = element("div", { class: "plot", tabindex: 0, role: "group",
      "aria-label": label + ". Arrow keys read values, shift and arrow keys move, plus and minus zoom, Home shows all.",
      onkeydown: (event) => this.key(event) });
    this.element = element("figure", { class: "chart" }, this.tools(), this.box, this.legend(), this.markList(),
      this.spoken);
    this.resizing = new ResizeObserver(() => this.resize());
    this.resizing.observe(this.box);
  }

  tools() {
    return element("div", { class: "tools" },
      button("+", "Zoom in", () => this.zoom(0.5)), button("\u2212", "Zoom out", () => this.zoom(2)),
      button("\u25c0", "Earlier", () => this.pan(-0.25)), button("\u25b6", "Later", () => this.pan(0.25)),
      button("All", "Show all", () => this.show(this.first, this.last)), this.moment,
      element("span", { class: "hint" }, "Drag to zoom, double-click for all."));
  }

  legend() {
    const palette = colours();
    const entry = (each, key) => {
      const value = element("span", { class: "value" });
      this.values.push({ each, value });
      return element("li", {}, key, element("span", { class: "name", title: each.name }, each.name), value);
    };
    return element("ul", { class: "legend", "aria-label": "Curves, the highest first" },
      this.lines.map((each, index) => entry(each, element("span", { class: "key line",
        style: "border-color:" + (each.colour || (index === 0 ? palette.reserved : palette.groups[index]))
          + (each.dash ? ";border-style:dashed" : "") }))),
      [...this.areas].reverse().map((each) => entry(each, element("span", { class: "key",
        style: "background:" + this.colour(each, palette) }))));
  }

  colour(area, palette) {
    return area.colour || (area.isOther ? palette.other
      : palette.groups[this.areas.indexOf(area) % palette.groups.length]);
  }

  markList() {
    if (this.marks.length === 0) {
      return null;
    }
    const listed = this.marks.filter(({ isBad }, index) => isBad || index < MAX_LISTED_MARKS);
    const left = this.marks.length - listed.length;
    return element("details", {}, element("summary", {}, counted(this.marks.length, "mark")),
      element("p", { class: "faint" }, "The chart shows those that it has room for; zoom in to see more."
        + (left > 0 ? " " + counted(left, "later mark") + " left out of this list." : "")),
      element("ol", { class: "marks" }, listed.map((mark) => element("li", {},
        button(secondsText(mark.seconds), "Show the time around this mark", () => this.around(mark.seconds)),
        " " + mark.text))));
  }

  /** Makes the plot when its width is known, and again when colours change. */
  resize() {
    const width = Math.floor(this.box.clientWidth);
    if (width < 50 || (this.plot && this.plot.width === width)) {
      return;
    }
    if (this.plot) {
      this.plot.setSize({ width, height: this.plot.height });
      this.show(this.from, this.to);
    } else {
      this.draw(width);
    }
  }

  draw(width) {
    const palette = colours();
    const axis = { stroke: palette.text, grid: { stroke: palette.line, width: 1 }, ticks: { stroke: palette.line },
      font: "12px system-ui, sans-serif" };
    const stepped = uPlot.paths.stepped({ align: 1 });
    const areas = [...this.areas].reverse().map((each) => ({ label: each.name, paths: stepped, width: 1,
      stroke: palette.paper, fill: this.colour(each, palette), points: { show: false } }));
    const lines = this.lines.map((each, index) => ({ label: each.name, paths: stepped, width: 2, dash: each.dash,
      stroke: each.colour || (index === 0 ? palette.reserved : palette.groups[index]), points: { show: false } }));
    this.plot = new uPlot({
      width,
      height: 300,
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => () => this.show(this.first, this.last) } },
      scales: { x: { time: false }, y: { range: (plot, least, most) => [0, (most || 1) * 1.08] } },
      axes: [{ ...axis, space: 70, values: (plot, values) => values.map((value) => secondsText(value)) },
        { ...axis, size: 72, incrs: BYTE_STEPS, values: (plot, values) => values.map((value) => bytesText(value)) }],
      series: [{}, ...areas, ...lines],
      hooks: {
        draw: [(plot) => this.drawMarks(plot, palette)],
        setSelect: [(plot) => this.selected(plot)],
        setCursor: [(plot) => this.read(plot.cursor.left < 0 ? null : plot.posToVal(plot.cursor.left, "x"))],
      },
    }, this.view(), this.box);
    this.read(null);
  }

  view() {
    return this.curves.view(this.from, this.to, this.plot ? this.plot.width : 800);
  }

  selected(plot) {
    const { left, width } = plot.select;
    if (width > 3) {
      const [from, to] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
      plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      this.show(from, to);
    }
  }

  show(from, to) {
    const least = (this.last - this.first) / 1e6;
    const span = Math.min(this.last - this.first, Math.max(to - from, least));
    this.from = Math.min(Math.max(from, this.first), this.last - span);
    this.to = this.from + span;
    if (this.plot) {
      this.plot.batch(() => {
        this.plot.setData(this.view(), false);
        this.plot.setScale("x", { min: this.from, max: this.to });
      });
    }
  }

  zoom(factor) {
    const middle = (this.from + this.to) / 2;
    const half = ((this.to - this.from) * factor) / 2;
    this.show(middle - half, middle + half);
  }

  pan(part) {
    const by = (this.to - this.from) * part;
    this.show(this.from + by, this.to + by);
  }

  around(seconds) {
    const half = (this.last - this.first) / 40;
    this.show(seconds - half, seconds + half);
    this.read(seconds);
  }

  key(event) {
    const sideways = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.target !== this.box || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (sideways && event.shiftKey) {
      this.pan(0.25 * sideways);
    } else if (sideways) {
      this.step(sideways);
    } else if (event.key === "+" || event.key === "=") {
      this.zoom(0.5);
    } else if (event.key === "-") {
      this.zoom(2);
    } else if (event.key === "Home" || event.key === "0") {
      this.show(this.first, this.last);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** Moves the reading line by a fiftieth of what is shown, and says what is there. */
  step(direction) {
    const now = this.reading ?? (direction > 0 ? this.from : this.to);
    const next = Math.min(this.to, Math.max(this.from, now + (direction * (this.to - this.from)) / 50));
    this.plot.setCursor({ left: this.plot.valToPos(next, "x"), top: 10 });
    this.read(next);
    this.spoken.textContent = this.moment.textContent + ": "
      + this.values.map(({ each, value }) => each.name + " " + value.textContent).join(", ");
  }

  /** Shows the values at a moment; without one, those at the end. */
  read(seconds) {
    this.reading = seconds;
    const at = seconds == null ? this.curves.atEnd() : this.curves.at(seconds);
    const areas = this.areas.length;
    this.moment.textContent = seconds == null ? "at the end" : "at " + secondsText(seconds);
    this.values.forEach(({ value }, index) => {
      const line = index - this.lines.length;
      const bytes = line < 0 ? at[areas + index] : at[line] - (line + 1 < areas ? at[line + 1] : 0);
      value.textContent = isNaN(bytes) ? "ended" : bytesText(bytes);
    });
  }

  drawMarks(plot, palette) {
    const { ctx } = plot;
    const { left, top, width, height } = plot.bbox;
    const scale = devicePixelRatio || 1;
    const labels = [];
    this.drawn = withRoom(this.marks, (mark) => plot.valToPos(mark.seconds, "x", true), left, left + width, scale);
    ctx.save();
    ctx.font = 11 * scale + "px system-ui, sans-serif";
    ctx.textBaseline = "top";
    ctx.textAlign = "left";
    for (const { mark, x } of [...this.drawn].sort((a, b) => b.mark.isBad - a.mark.isBad)) { // Their labels come first.
      ctx.strokeStyle = ctx.fillStyle = mark.isBad ? palette.bad : palette.text;
      ctx.lineWidth = (mark.isBad ? 2 : 1) * scale;
      ctx.setLineDash(mark.isBad ? [] : [3 * scale, 3 * scale]);
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + height);
      ctx.stroke();
      const words = mark.text.length > 28 ? mark.text.slice(0, 27) + "\u2026" : mark.text;
      const text = (mark.isBad ? "\u2715 " : "\u25be ") + words;
      const needed = ctx.measureText(text).width + 8 * scale;
      const at = Math.min(x + 3 * scale, left + width - needed);
      if (labels.every((each) => at >= each.at + each.needed || at + needed <= each.at)) {
        labels.push({ text, at, needed, colour: ctx.fillStyle });
      }
    }
    this.labels = labels.map((label) => label.text);
    for (const label of labels) { // On top of all lines.
      ctx.fillStyle = palette.paper;
      ctx.fillRect(label.at, top, label.needed - 6 * scale, 14 * scale);
      ctx.fillStyle = label.colour;
      ctx.fillText(label.text, label.at, top + 2 * scale);
    }
    ctx.restore();
  }

  remove() {
    this.resizing.disconnect();
    this.plot?.destroy();
  }
}

/** Where a chart begins at first: after an idle start that would take more than half of it. */
function busyFrom(seconds, last) {
  const busy = seconds[Math.floor(seconds.length / 100)];
  return busy > (seconds[0] + last) / 2 ? busy - (last - busy) / 20 : seconds[0];
}

/**
 * The marks between two places that a chart has room for, in their order: first those that are bad, then others, each
 * far enough from those before it and from all that are bad.
 */
function withRoom(marks, placeOf, left, right, scale) {
  const placed = marks.map((mark) => ({ mark, x: placeOf(mark) })).filter(({ x }) => x >= left - 1 && x <= right + 1);
  const apart = (some, distance) => {
    let free = -Infinity;
    return some.filter(({ x }) => x >= free && (free = x + distance * scale) > x);
  };
  const bad = apart(placed.filter(({ mark }) => mark.isBad), BAD_MARK_DISTANCE);
  const others = placed.filter(({ mark, x }) => !mark.isBad
    && bad.every((each) => Math.abs(each.x - x) >= MARK_DISTANCE * scale));
  return [...bad, ...apart(others, MARK_DISTANCE)].sort((a, b) => a.x - b.x);
}

/** Annotations, refusals and swaps of the current allocator as marks. */
function marksOf(run) {
  return run.history.marks.map(({ seconds, event }) => ({ seconds,
    isBad: event.event === "outOfMemory" || event.text === REFUSED_HERE,
    text: event.event === "annotated" ? event.text
      : event.event === "outOfMemory" ? "refused " + bytesText(event.byteSize)
      : event.allocator + " is current" }));
}
