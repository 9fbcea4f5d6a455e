// Makes elements of the page: sections, choices, tables that sort.

/** element("p", {class: "note"}, "text", child): attributes that begin with "on" are listeners. */
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) {
      made.addEventListener(name.slice(2), value);
    } else if (value === true) {
      made.setAttribute(name, "");
    } else if (value != null && value !== false) {
      made.setAttribute(name, value);
    }
  }
  made.append(...children.flat(2).filter((child) => child != null));
  return made;
}

/** A section with a heading, listed in the table of contents. */
function section(id, title, ...children) {
  return element("section", { id, "aria-labelledby": id + "-title" },
    element("h2", { id: id + "-title" }, title), ...children);
}

/** What the page's words mean. */
const WORDS = {
  block: "what one allocation got",
  live: "allocated, and the program has not freed it",
  requested: "the bytes that the program requested",
  reserved: "what an allocator has obtained from the driver and not given back, in use or not",
  idle: "reserved, and in no block: free for the next allocation",
  segment: "a range of memory that an allocator obtained from the driver at once, and cuts into blocks",
  stream: "a queue of work on the device; a block belongs to the stream that it was allocated for",
  pool: "a part of an allocator with segments of its own",
  "allocation site": "the place in the program that allocated a block, the innermost line of its call stack",
  stranded: "idle memory that serves only one stream, and that stream has stopped allocating",
  fragmented: "idle in pieces next to live blocks, so that a larger request can't use it; wholly free segments are cached,"
    + " not fragmented",
  mark: "a moment that the program named, a refused request, or a change of the current allocator",
  scope: "a region of code whose allocations go to one pool or allocator",
  waiting: "freed, but another stream or a graph may still use it: it becomes available once that stream's work on it is complete, or that graph is destroyed",
  "in a thread's cache": "freed, and kept by the thread for its next allocation",
  "lost to rounding": "the bytes by which blocks exceed their requests",
  piece: "idle memory without a gap, between blocks or ends of a segment",
  "inactive for": "the time since a stream's last allocation or free",
  "frees of others": "frees of blocks that another thread or stream allocated",
  step: "what the allocator tried, to free memory, before it refused the request",
};

/** Explains words; closed at first. */
function explained(...words) {
  return element("details", { class: "words" }, element("summary", {}, "Terms: " + words.join(", ")),
    element("dl", {}, words.map((word) => element("div", {}, element("dt", {}, word), element("dd", {}, WORDS[word])))));
}

/** A labelled choice. Options are pairs of value and text. */
function choice(label, options, chosen, onChange) {
  return element("label", { class: "choice" }, element("span", {}, label),
    element("select", { onchange: (event) => onChange(event.target.value) },
      options.map(([value, text]) => element("option", { value, selected: String(value) === String(chosen) }, text))));
}

function button(text, label, onClick) {
  return element("button", { type: "button", "aria-label": label, title: label, onclick: onClick }, text);
}

/** The colours of the page now, light or dark. */
function colours() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue("--" + name).trim();
  return {
    groups: [1, 2, 3, 4, 5, 6, 7, 8].map((number) => named("group-" + number)),
    other: named("other"),
    text: named("text"),
    faint: named("faint"),
    line: named("line"),
    paper: named("paper"),
    accent: named("accent"),
    bad: named("bad"),
    reserved: named("reserved"),
    live: named("live"),
    waiting: named("waiting"),
    cached: named("cached"),
    idle: named("idle"),
  };
}

/**
 * A table that sorts by its headers. A column has a title, a value of a row (number or text), and maybe a text or
 * element to show instead, `bar: true` for a bar below a number, and `wide: true` for long texts. Arrow keys move
 * through the rows. Roles say that it is a table where a narrow window shows rows as blocks.
 */
function sortableTable(caption, columns, rows, sortedBy, limit = 50) {
  let column = sortedBy;
  let descending = typeof (rows.length ? columns[column].value(rows[0]) : 0) === "number";
  let shown = limit;
  const body = element("tbody", {});
  const more = element("div", { class: "more" });
  const most = columns.map((each) => each.bar ? Math.max(1, ...rows.map(each.value)) : 1);
  const headers = columns.map((each, index) => element("th", { scope: "col", role: "columnheader",
    class: numeric(each) ? "number" : null },
    element("button", { type: "button", onclick: () => sortBy(index) }, each.title)));

  function numeric(each) {
    return rows.length > 0 && typeof each.value(rows[0]) === "number";
  }

  function sortBy(index) {
    descending = index === column ? !descending : numeric(columns[index]);
    column = index;
    fill();
  }

  function compare(a, b) {
    const [x, y] = [columns[column].value(a), columns[column].value(b)];
    const order = typeof x === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
    return descending ? -order : order;
  }

  function fill() {
    headers.forEach((header, index) => header.setAttribute("aria-sort",
      index !== column ? "none" : descending ? "descending" : "ascending"));
    const sorted = [...rows].sort(compare);
    body.replaceChildren(...sorted.slice(0, shown).map(filled));
    const first = body.querySelector("tr");
    if (first) {
      first.tabIndex = 0;
    }
    more.replaceChildren();
    if (rows.length > shown) {
      more.append(button("Show all " + countText(rows.length), "Show all rows of this table", () => {
        shown = rows.length;
        fill();
      }));
    }
  }

  function filled(row) {
    const cells = columns.map((each, index) => {
      const content = each.text ? each.text(row) : String(each.value(row));
      const cell = element("td", { role: "cell", class: numeric(each) ? "number" : each.wide ? "wide" : null,
        "data-title": each.title }, content);
      if (each.bar) {
        cell.classList.add("bar");
        cell.style.setProperty("--part", (100 * each.value(row)) / most[index] + "%");
      }
      return cell;
    });
    return element("tr", { role: "row", tabindex: -1 }, cells);
  }

  body.addEventListener("keydown", (event) => {
    const row = event.target.closest("tr");
    const next = event.key === "ArrowDown" ? row.nextElementSibling
      : event.key === "ArrowUp" ? row.previousElementSibling
      : event.key === "Home" ? body.firstElementChild
      : event.key === "End" ? body.lastElementChild : null;
    if (next && event.target === row) {
      event.preventDefault();
      row.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    } else if (event.key === "Enter" && event.target === row && row.querySelector("summary")) {
      row.querySelector("summary").click();
    }
  });
  fill();
  return element("div", { class: "table" }, element("table", { role: "table" },
    element("caption", {}, caption), element("thead", {}, element("tr", { role: "row" }, headers)), body), more);
}
