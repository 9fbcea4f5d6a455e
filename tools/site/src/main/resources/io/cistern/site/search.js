// Finds pages by words. The index is loaded when the reader begins to search.
(function () {
  const script = document.currentScript;
  const root = script.dataset.root;
  const box = document.getElementById("search");
  const list = document.getElementById("found");
  const FOR_MAINTAINERS = /^(ARCHITECTURE|CHANGELOG|CONTRIBUTING|testing|tools|docs\/(decisions|measurements))/;
  let loading = false;

  function load() {
    if (!loading) {
      loading = true;
      const index = document.createElement("script");
      index.src = root + "search-index.js";
      index.onload = show;
      document.head.append(index);
    }
  }

  function rank(entry, words) {
    const [page, heading, , text] = entry.map((part) => part.toLowerCase());
    let sum = 0;
    for (const word of words) {
      const found = 8 * heading.includes(word) + 4 * page.includes(word) + text.includes(word);
      if (found === 0) {
        return 0;
      }
      sum += found;
    }
    return FOR_MAINTAINERS.test(entry[2]) ? sum / 4 : sum;
  }

  function excerpt(text, word) {
    const at = Math.max(0, text.toLowerCase().indexOf(word) - 40);
    return (at > 0 ? "…" : "") + text.slice(at, at + 140);
  }

  function show() {
    const words = box.value.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
    const found = (words.length && window.searchIndex ? window.searchIndex : [])
      .map((entry) => [rank(entry, words), entry])
      .filter(([sum]) => sum > 0)
      .sort(([a], [b]) => b - a)
      .slice(0, 12);
    list.replaceChildren(
      ...found.map(([, [page, heading, address, text]]) => {
        const item = document.createElement("li");
        const link = document.createElement("a");
        link.href = root + address;
        link.textContent = heading === page ? page : page + ": " + heading;
        const words0 = document.createElement("small");
        words0.textContent = excerpt(text, words[0]);
        item.append(link, words0);
        return item;
      }),
    );
    list.hidden = words.length === 0;
    if (words.length && window.searchIndex && !found.length) {
      list.textContent = "Nothing found. The Javadoc has its own search.";
    }
  }

  box.addEventListener("focus", load);
  box.addEventListener("input", show);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      box.value = "";
      show();
    } else if (event.key === "/" && document.activeElement !== box) {
      event.preventDefault();
      box.focus();
    } else if (event.key === "Enter" && document.activeElement === box && list.querySelector("a")) {
      location.href = list.querySelector("a").href;
    }
  });
})();
