// Which code holds what: live blocks by site, call stack, thread, stream, allocator or scope.

const HOLDER_CHOICES = [["site", "allocation site"], ["stack", "call stack"], ["thread", "thread"],
  ["stream", "stream"], ["allocator", "allocator or pool"], ["scope", "scope"]];
const BLOCK_FIELDS = { site: "site", stack: "stack", thread: "threadNumber", stream: "streamNumber",
  allocator: "owner", scope: "scopeNumber" };

function holdersSection(run) {
  if (run.liveBlocks.length === 0) {
    return section("holders", "Who holds what", element("p", {}, "No block is live."));
  }
  const place = element("div", {});
  const show = (by) => place.replaceChildren(holderTable(run, by));
  show("site");
  const choices = HOLDER_CHOICES.filter(([by]) => by !== "scope" || run.scopes.texts.length > 1);
  const isLater = run.snapshot.fit && run.history && run.history.kind.includes(KIND.outOfMemory);
  return section("holders", "Who holds what", isLater
    ? element("p", {}, "After the exception had freed what the refused step held. ",
      element("a", { href: "#fit" }, "Who held the memory when the request was refused"), ".")
    : null, choice("By", choices, "site", show), place);
}

function holderTable(run, by) {
  const rows = holdersBy(run, by);
  const total = sum(rows, (row) => row.bytes);
  const columns = [
    { title: by === "site" || by === "stack" ? "Site" : "Name", wide: true, value: (row) => row.name,
      text: (row) => by === "site" || by === "stack" ? stackDetails(run, row) : row.name },
    { title: "Live bytes", value: (row) => row.bytes, text: (row) => bytesText(row.bytes), bar: true },
    { title: "Share", value: (row) => row.bytes / total, text: (row) => percentText(row.bytes, total) },
    { title: "Blocks", value: (row) => row.blocks, text: (row) => countText(row.blocks) },
    { title: "Oldest", value: (row) => row.oldest, text: (row) => row.oldest < 0 ? "unknown"
      : secondsText(row.oldest / 1e9) },
  ];
  if (run.history) {
    columns.push({ title: "Allocated", value: (row) => row.made, text: (row) => countText(row.made) },
      { title: "Freed", value: (row) => row.freed, text: (row) => countText(row.freed) });
  }
  return sortableTable(counted(run.liveBlocks.length, "live block") + ", " + bytesText(total)
    + (run.history ? "; allocations and frees as far as they were recorded" : ""), columns, rows, 1);
}

function holdersBy(run, by) {
  const rows = new Map();
  const rowOf = (number) => {
    let row = rows.get(number);
    if (!row) {
      rows.set(number, row = { number, name: nameOf(run, by, number), bytes: 0, blocks: 0, oldest: -1, made: 0,
        freed: 0, stacks: new Map() });
    }
    return row;
  };
  for (const block of run.liveBlocks) {
    const row = rowOf(block[BLOCK_FIELDS[by]]);
    row.bytes += block.requestedBytes;
    row.blocks++;
    row.oldest = Math.max(row.oldest, block.ageNanos ?? -1);
    row.stacks.set(block.stack, (row.stacks.get(block.stack) || 0) + block.requestedBytes);
  }
  if (run.history) {
    const { lives, size } = run.history;
    for (let i = 0; i < lives.size; i++) {
      const row = rows.get(lives[by][i]);
      if (row) {
        row.made += lives.born[i] >= 0 ? 1 : 0;
        row.freed += lives.died[i] < size ? 1 : 0;
      }
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
