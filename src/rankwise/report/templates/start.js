// What happens when the page is opened and printed.

async function start() {
  numbers = await unpacked();
  BASE = numbers.rankers.indexOf(numbers.baseline);
  others = numbers.rankers.map((_, place) => place).filter((place) => place !== BASE);
  labels = [...new Set(numbers.lists.queries.flatMap((query) => query.label))].sort((a, b) => a - b);
  haystacks = numbers.lists.queries.map(textsOf);
  nameTheme();
  byId("theme").addEventListener("click", () => setTheme(theme() === "dark" ? "light" : "dark"));
  wantsDark.addEventListener("change", nameTheme);
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  document.querySelectorAll("table[data-table]").forEach((table) => {
    makeSavable(table, table.dataset.table, () => numbers.tables[table.dataset.table]);
  });
  makeSavable(byId("query-table"), "queries", queryRows);
  for (const side of ["left", "right"]) makeSavable(byId(`${side}-list`), `${side} list`, () => listRows(side));
  if (others.length) {
    numbersBelow(byId("changes"), "changes", () => drawn.get(byId("changes")));
    options(byId("of-ranker"), others.map((place) => numbers.rankers[place]), firstShown());
    options(byId("of-measure"), numbers.measures, 0);
    for (const id of ["of-ranker", "of-measure"]) byId(id).addEventListener("change", () => { showChanges(); fillLists(); });
  }
  byId("find").addEventListener("input", findQueries);
  byId("query-table").addEventListener("click", (event) => {
    const button = event.target.closest("[data-query]");
    if (button) openQuery(Number(button.dataset.query), BASE, chosenRanker());
  });
  for (const id of ["left", "right"]) byId(id).addEventListener("change", fillLists);
  for (const id of ["left-list", "right-list"]) {
    byId(id).addEventListener("click", (event) => {
      const button = event.target.closest("[data-document]");
      if (button) chooseDocument(Number(button.dataset.document), event.currentTarget);
    });
  }
  byId("versus").addEventListener("change", chooseVersus);
  byId("close").addEventListener("click", closeQuery);
  showChanges();
  drawNext([...document.querySelectorAll("[data-figure]")]);
}

// One figure after the other: the page answers meanwhile.
function drawNext(places) {
  const [place, ...rest] = places;
  if (!place) {
    document.documentElement.dataset.ready = "yes";
    return;
  }
  const name = place.dataset.figure;
  try {
    show(place, numbers.figures[name]);
    numbersBelow(place, name, () => numbers.figures[name]);
  } catch (error) {
    // one figure must not cost the others
    place.replaceChildren(element("p", { className: "problem", text: `This could not be drawn: ${error.message}` }));
  }
  setTimeout(() => drawNext(rest), 0);
}

// Paper is light, has one width, and no place for what is closed.
let before = null;
window.addEventListener("beforeprint", () => {
  const closed = [...document.querySelectorAll("details:not([open], .numbers, .closed-in-print)")];
  before = { theme: document.documentElement.dataset.theme, closed };
  closed.forEach((each) => { each.open = true; });
  document.documentElement.classList.add("printing");
  setTheme("light");
  for (const place of drawn.keys()) draw(place);
});
window.addEventListener("afterprint", () => {
  before.closed.forEach((each) => { each.open = false; });
  document.documentElement.classList.remove("printing");
  setTheme(before.theme);
  for (const place of drawn.keys()) draw(place);
});

start().catch((error) => {
  byId("unsupported").hidden = false;
  throw error;
});
