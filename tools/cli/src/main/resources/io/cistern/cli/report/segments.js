// The map of segments on a canvas: blocks in their places, with what is known of each.

const STATES = { live: "live", waiting: "waiting for another stream or a graph", cached: "in a thread's cache", idle: "idle" };
const ROW_HEIGHT = 20;
const ROW_GAP = 5;
const HEAD_HEIGHT = 24;
const LINE_HEIGHT = 16;
const SEGMENT_GAP = 3;

function segmentsSection(run, maps) {
  if (run.segments.length === 0) {
    return section("segments", "Map of segments", element("p", {}, "No memory is reserved."));
  }
  const map = new SegmentMap(run);
  maps.push(map);
  return section("segments", "Map of segments", explained("waiting", "in a thread's cache"), map.element);
}

class SegmentMap {
  constructor(run) {
    this.run = run;
    this.segmentGroups = inGroups(run.segments);
    this.segments = this.segmentGroups.flatMap((group) => group.segments);
    this.total = sum(run.segments, (segment) => segment.byteSize);
    this.detail = 1;
    this.by = "state";
    this.chosen = null; // {segment: index in this.segments, block: index in it}
    this.isPinned = false;
    this.canvas = element("canvas", { tabindex: 0, role: "application", "aria-label": "Map of "
      + counted(run.segments.length, "segment") + ". Left and right go from block to block, page up and down from"
      + " segment to segment, up and down to the row above and below; Enter pins a block, Escape unpins it.",
      "aria-describedby": "block-details",
      onkeydown: (event) => this.key(event),
      onmousemove: (event) => this.hover(event),
      onmouseleave: () => this.leave(),
      onclick: (event) => this.pin(this.blockAt(event)),
      onfocus: () => this.chosen ?? this.choose({ segment: 0, block: 0 }) });
    this.spacer = element("div", { class: "spacer" }, this.canvas);
    this.scroller = element("div", { class: "map", onscroll: () => this.draw() }, this.spacer);
    this.details = element("div", { id: "block-details", class: "details", "aria-live": "polite" },
      element("p", { class: "faint" }, "Point at a block, or press Tab and arrow keys, to see what it is."));
    this.keys = element("ul", { class: "legend", "aria-label": "Colours" });
    this.element = element("div", {}, element("div", { class: "tools" },
      choice("Colours by", run.known([["state", "state"], ["site", "allocation site"], ["stream", "stream"],
        ["thread", "thread"]]), "state", (by) => this.colourBy(by)),
      button("+", "More detail", () => this.zoom(2)), button("\u2212", "Less detail", () => this.zoom(0.5))),
    this.keys, this.scroller, this.details);
    this.resizing = new ResizeObserver(() => this.layout());
    this.resizing.observe(this.scroller);
    this.colourBy("state");
  }

  colourBy(by) {
    this.by = by;
    this.palette = colours();
    this.patterns = patternsOf(this.palette);
    const field = BLOCK_FIELDS[by];
    this.groups = field ? greatestGroups(this.run.liveBlocks, field) : new Map();
    const key = (name, fill) => element("li", {}, swatch(fill), element("span", { class: "name", title: name }, name));
    const groups = [...this.groups].map(([number, index]) => key(nameOf(this.run, by, number), this.palette.groups[index]));
    if (this.groups.size > 0 && this.groups.size < new Set(this.run.liveBlocks.map((block) => block[field])).size) {
      groups.push(key("others", this.palette.other));
    }
    this.keys.replaceChildren(...(groups.length > 0 ? groups : [key(STATES.live, this.patterns.live)]),
      ...["waiting", "cached", "idle"].map((state) => key(STATES[state], this.patterns[state])));
    this.draw();
  }

  zoom(factor) {
    this.detail = Math.min(256, Math.max(0.25, this.detail * factor));
    this.layout();
    this.showChosen();
  }

  /** Puts segments side by side into rows like words into lines; longer ones go on in the next row. */
  layout() {
    const width = this.scroller.clientWidth - 2;
    if (width < 50) {
      return;
    }
    this.width = width;
    this.bytesPerPixel = this.scale(width);
    this.rows = [];
    let y = 0, x = 0, row = null;
    const newRow = () => {
      this.rows.push(row = { y, height: ROW_HEIGHT, pieces: [] });
      y += ROW_HEIGHT + ROW_GAP;
      x = 0;
    };
    let index = 0;
    for (const each of this.segmentGroups) {
      const words = [each.title, groupFigures(each)];
      const lines = width < 500 ? words : [words.join(": ")];
      this.rows.push({ y, height: HEAD_HEIGHT + LINE_HEIGHT * (lines.length - 1), lines });
      y += HEAD_HEIGHT + LINE_HEIGHT * (lines.length - 1);
      newRow();
      for (const segment of each.segments) {
        if (x > 0 && x + Math.max(3, segment.byteSize / this.bytesPerPixel) > width) {
          newRow();
        }
        for (let from = 0; from < segment.byteSize;) {
          const to = Math.min(segment.byteSize, from + Math.ceil((width - x) * this.bytesPerPixel));
          const pixels = Math.max(3, (to - from) / this.bytesPerPixel);
          row.pieces.push({ segment: index, from, to, x, width: pixels });
          x += pixels + SEGMENT_GAP;
          from = to;
          if (from < segment.byteSize) {
            newRow();
          }
        }
        index++;
      }
    }
    this.height = y;
    this.spacer.style.height = y + "px";
    this.draw();
  }

  /** Bytes for a pixel: about 14 rows in all, so that whole segments of the usual size fill a row. */
  scale(width) {
    const wanted = Math.max(1, this.total / (width * 14 * this.detail));
    const sizes = this.segments.map((segment) => segment.byteSize).sort((a, b) => a - b);
    const usual = sizes[sizes.length >> 1];
    const inRow = Math.round((width * wanted) / usual);
    return inRow < 1 || inRow > width / 40 ? wanted : (usual * inRow) / (width - inRow * SEGMENT_GAP);
  }

  /** Draws the rows that are in sight. */
  draw() {
    if (!this.rows) {
      return;
    }
    const scale = devicePixelRatio || 1;
    const height = Math.min(this.scroller.clientHeight, this.height);
    if (this.canvas.width !== Math.round(this.width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(this.width * scale);
      this.canvas.height = Math.round(height * scale);
      this.canvas.style.width = this.width + "px";
      this.canvas.style.height = height + "px";
    }
    const top = this.scroller.scrollTop;
    const context = this.canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.width, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const row of this.rows) {
      if (row.y + row.height < top || row.y > top + height) {
        continue;
      }
      if (row.lines) {
        context.fillStyle = this.palette.text;
        row.lines.forEach((line, index) =>
          context.fillText(line, 4, row.y - top + HEAD_HEIGHT / 2 + LINE_HEIGHT * index, this.width - 4));
      } else {
        row.pieces.forEach((piece) => this.drawPiece(context, piece, row.y - top));
      }
    }
    this.drawChosen(context, top);
  }

  drawPiece(context, piece, y) {
    const segment = this.segments[piece.segment];
    const { blocks } = segment;
    let painted = -1;
    for (let i = blockIndex(segment, piece.from); i < blocks.length; i++) {
      const block = blocks[i];
      const begin = block.address - segment.address;
      if (begin >= piece.to) {
        break;
      }
      const [x, width] = this.extent(piece, begin, begin + block.byteSize);
      if (x + width < painted + 0.5 && block.state === "idle") {
        continue;
      }
      context.fillStyle = this.fill(block);
      context.fillRect(x, y, Math.max(0.7, width - (width > 4 ? 1 : 0)), ROW_HEIGHT);
      painted = x + width;
    }
    context.strokeStyle = this.palette.faint;
    context.lineWidth = 1;
    context.strokeRect(piece.x + 0.5, y + 0.5, piece.width - 1, ROW_HEIGHT - 1);
  }

  extent(piece, from, to) {
    const scale = piece.width / (piece.to - piece.from);
    const begin = piece.x + (Math.max(from, piece.from) - piece.from) * scale;
    return [begin, piece.x + (Math.min(to, piece.to) - piece.from) * scale - begin];
  }

  fill(block) {
    if (block.state !== "live" || this.by === "state") {
      return this.patterns[block.state];
    }
    const index = this.groups.get(block[BLOCK_FIELDS[this.by]]);
    return index === undefined ? this.palette.other : this.palette.groups[index];
  }

  drawChosen(context, top) {
    for (const { y, piece, from, to } of this.chosenPieces()) {
      const [x, width] = this.extent(piece, from, to);
      context.strokeStyle = this.palette.paper;
      context.lineWidth = 5;
      context.strokeRect(x, y - top, Math.max(2, width), ROW_HEIGHT);
      context.strokeStyle = this.palette.text;
      context.lineWidth = this.isPinned ? 3 : 2;
      context.strokeRect(x, y - top, Math.max(2, width), ROW_HEIGHT);
    }
  }

  chosenPieces() {
    if (!this.chosen || !this.rows) {
      return [];
    }
    const segment = this.segments[this.chosen.segment];
    const block = segment.blocks[this.chosen.block];
    const from = block.address - segment.address;
    const to = from + block.byteSize;
    return this.rows.flatMap((row) => (row.pieces || []).filter((piece) => piece.segment === this.chosen.segment
      && piece.from < to && piece.to > from).map((piece) => ({ y: row.y, piece, from, to })));
  }

  blockAt(event) {
    const box = this.canvas.getBoundingClientRect();
    return this.blockOver(event.clientX - box.left, event.clientY - box.top + this.scroller.scrollTop);
  }

  blockOver(x, y) {
    const row = this.rows.find((each) => each.pieces && y >= each.y && y < each.y + ROW_HEIGHT);
    const piece = row && row.pieces.find((each) => x >= each.x && x < each.x + each.width);
    if (!piece) {
      return null;
    }
    const segment = this.segments[piece.segment];
    const at = piece.from + ((x - piece.x) * (piece.to - piece.from)) / piece.width;
    return { segment: piece.segment, block: blockIndex(segment, at) };
  }

  hover(event) {
    if (!this.isPinned) {
      const block = this.blockAt(event);
      if (block) {
        this.choose(block);
      }
    }
  }

  leave() {
    if (!this.isPinned && document.activeElement !== this.canvas) {
      this.chosen = null;
      this.draw();
    }
  }

  pin(block) {
    this.isPinned = block !== null && !(this.isPinned && this.chosen && block.segment === this.chosen.segment
      && block.block === this.chosen.block);
    if (block) {
      this.choose(block);
    } else {
      this.draw();
    }
  }

  choose(block) {
    this.chosen = block;
    this.details.replaceChildren(blockDetails(this.run, this.segments[block.segment],
      this.segments[block.segment].blocks[block.block], this.isPinned));
    this.draw();
  }

  key(event) {
    const { segment, block } = this.chosen || { segment: 0, block: 0 };
    const last = this.segments.length - 1;
    const of = (index) => ({ segment: Math.min(last, Math.max(0, index)), block: 0 });
    const moves = {
      ArrowRight: () => block + 1 < this.segments[segment].blocks.length ? { segment, block: block + 1 }
        : segment < last ? of(segment + 1) : null,
      ArrowLeft: () => block > 0 ? { segment, block: block - 1 }
        : segment > 0 ? { segment: segment - 1, block: this.segments[segment - 1].blocks.length - 1 } : null,
      ArrowDown: () => this.blockInRow(1),
      ArrowUp: () => this.blockInRow(-1),
      PageDown: () => of(segment + 1),
      PageUp: () => of(segment - 1),
      Home: () => of(0),
      End: () => ({ segment: last, block: this.segments[last].blocks.length - 1 }),
    };
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (moves[event.key]) {
      const next = moves[event.key]();
      if (next) {
        this.isPinned = false;
        this.choose(next);
        this.showChosen();
      }
    } else if (event.key === "Enter" || event.key === " ") {
      this.pin(this.chosen);
    } else if (event.key === "Escape") {
      this.isPinned = false;
      this.choose(this.chosen || { segment: 0, block: 0 });
    } else if (event.key === "+" || event.key === "-") {
      this.zoom(event.key === "+" ? 2 : 0.5);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** The block in the next row of segments above or below, at the same place. */
  blockInRow(direction) {
    const [place] = this.chosenPieces();
    const rows = this.rows.filter((row) => row.pieces && row.pieces.length > 0);
    const index = place ? rows.findIndex((row) => row.y === place.y) + direction : 0;
    const row = rows[index];
    if (!row) {
      return null;
    }
    const x = place ? this.extent(place.piece, place.from, place.to)[0] + 1 : 0;
    const piece = row.pieces.find((each) => x < each.x + each.width) || row.pieces[row.pieces.length - 1];
    return this.blockOver(Math.min(Math.max(x, piece.x), piece.x + piece.width - 0.5), row.y);
  }

  showChosen() {
    const [place] = this.chosenPieces();
    if (place) {
      const { scrollTop, clientHeight } = this.scroller;
      if (place.y < scrollTop + HEAD_HEIGHT) {
        this.scroller.scrollTop = place.y - HEAD_HEIGHT;
      } else if (place.y + ROW_HEIGHT > scrollTop + clientHeight) {
        this.scroller.scrollTop = place.y + ROW_HEIGHT + ROW_GAP - clientHeight;
      }
    }
  }

  remove() {
    this.resizing.disconnect();
  }
}

/** Segments of one allocator, device and stream together, the greatest first. */
function inGroups(segments) {
  const groups = new Map();
  for (const segment of segments) {
    const title = groupTitle(segment);
    let group = groups.get(title);
    if (!group) {
      groups.set(title, group = { title, segments: [], bytes: 0, live: 0 });
    }
    if (segment.blocks.length > 0) {
      group.segments.push(segment);
      group.bytes += segment.byteSize;
      group.live += sum(segment.blocks, (block) => block.state === "live" ? block.byteSize : 0);
    }
  }
  for (const group of groups.values()) {
    group.segments.sort((a, b) => a.address - b.address);
  }
  return [...groups.values()].sort((a, b) => b.bytes - a.bytes);
}

function groupTitle(segment) {
  return segment.allocator + ", device " + segment.device + ", "
    + (segment.reported === false ? "blocks alone" : streamText(segment.stream));
}

function groupFigures(group) {
  const [first] = group.segments;
  return bytesText(group.bytes) + (first && first.reported === false ? " in " + counted(group.segments.length, "block")
    : " in " + counted(group.segments.length, "segment") + ", " + percentText(group.live, group.bytes) + " live");
}

/** The block that contains an offset in its segment, by its index. */
function blockIndex(segment, offset) {
  const { blocks } = segment;
  let low = 0;
  let high = blocks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (blocks[middle].address - segment.address <= offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return Math.max(0, low - 1);
}

function greatestGroups(blocks, field) {
  const bytes = new Map();
  for (const block of blocks) {
    bytes.set(block[field], (bytes.get(block[field]) || 0) + block.byteSize);
  }
  return new Map([...bytes].sort((a, b) => b[1] - a[1]).slice(0, 8).map(([number], index) => [number, index]));
}

/** Fills that differ without colour: plain, stripes, dots, nearly empty. */
function patternsOf(palette) {
  const context = document.createElement("canvas").getContext("2d");
  const pattern = (paint) => {
    const tile = element("canvas", { width: 8, height: 8 });
    const pen = tile.getContext("2d");
    paint(pen);
    return context.createPattern(tile, "repeat");
  };
  return {
    live: palette.live,
    waiting: pattern((pen) => {
      pen.fillStyle = palette.waiting;
      pen.fillRect(0, 0, 8, 8);
      pen.strokeStyle = palette.paper;
      pen.lineWidth = 2;
      pen.beginPath();
      for (const x of [-8, 0, 8]) {
        pen.moveTo(x, 8);
        pen.lineTo(x + 8, 0);
      }
      pen.stroke();
    }),
    cached: pattern((pen) => {
      pen.fillStyle = palette.cached;
      pen.fillRect(0, 0, 8, 8);
      pen.fillStyle = palette.paper;
      pen.fillRect(1, 1, 2, 2);
      pen.fillRect(5, 5, 2, 2);
    }),
    idle: palette.idle,
  };
}

function swatch(fill) {
  const canvas = element("canvas", { class: "key", width: 28, height: 28, "aria-hidden": "true" });
  const pen = canvas.getContext("2d");
  pen.scale(2, 2);
  pen.fillStyle = fill;
  pen.fillRect(0, 0, 14, 14);
  return canvas;
}

function blockDetails(run, segment, block, isPinned) {
  const isLive = block.state === "live";
  const stream = block.stream ?? segment.stream;
  const entries = [
    ["State", STATES[block.state] ?? block.state],
    ["Size", bytesText(block.byteSize) + " (" + countText(block.byteSize) + " bytes)"],
    isLive ? ["Requested", bytesText(block.requestedBytes) + (block.requestedBytes < block.byteSize
      ? ", " + bytesText(block.byteSize - block.requestedBytes) + " lost to rounding" : "")] : null,
    ["Stream", streamText(stream)],
    isLive && block.thread != null ? ["Thread", block.thread] : null,
    isLive ? ["Age", block.ageNanos == null ? "unknown" : secondsText(block.ageNanos / 1e9)] : null,
    block.scope && block.scope !== NO_SCOPE ? ["Scope", block.scope] : null,
    block.graph ? ["Kept by", block.graph] : null,
    isLive ? ["Site", element("ol", { class: "stack" }, run.stackLines(block.stack).map((line) =>
      element("li", {}, line)))] : null,
    ["Address", addressText(block.address)],
    segment.reported === false ? null : ["Segment", addressText(segment.address) + ", " + bytesText(segment.byteSize)
      + " in " + counted(segment.blocks.length, "block")],
  ];
  return element("div", {}, element("h3", {}, isPinned ? "Pinned block" : "Block"), element("dl", {},
    entries.filter((entry) => entry !== null).map(([name, value]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, value)))));
}
