// What happens when the page is opened, resized and printed.

function start() {
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  byId("theme").addEventListener("click", () => setTheme(theme() === "dark" ? "light" : "dark"));
  wantsDark.addEventListener("change", repaint);
  if (others.length) {
    options(byId("of-ranker"), others.map((place) => numbers.rankers[place]), 0);
    options(byId("of-measure"), numbers.measures, 0);
    for (const id of ["of-ranker", "of-measure"]) byId(id).addEventListener("change", () => { showChanges(); fillLists(); });
  }
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
  repaint();
  drawNext([...document.querySelectorAll("[data-figure]")]);
}

// One figure after the other, so that the page answers meanwhile.
function drawNext(places) {
  const [place, ...rest] = places;
  if (!place) {
    document.documentElement.dataset.ready = "yes";
    return;
  }
  show(place, numbers.figures[place.dataset.figure]);
  setTimeout(() => drawNext(rest), 0);
}

// Paper is light, and has no room for what is closed.
let before = null;
window.addEventListener("beforeprint", () => {
  const closed = [...document.querySelectorAll("details.opened-in-print:not([open])")];
  before = { theme: document.documentElement.dataset.theme, closed };
  closed.forEach((each) => { each.open = true; });
  document.documentElement.classList.add("printing");
  setTheme("light");
});
window.addEventListener("afterprint", () => {
  before.closed.forEach((each) => { each.open = false; });
  document.documentElement.classList.remove("printing");
  setTheme(before.theme);
});

start();
