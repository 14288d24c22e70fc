// Wins and losses against the baseline, query by query, for the ranker and the measure that the reader chooses.

let BASE = 0; // the baseline's place among the rankers
let others = []; // the places of the other rankers

// The place among the others of the ranker that the page recommends, or that comes next to a recommended baseline.
function firstShown() {
  const shown = numbers.recommendation ? others.indexOf(numbers.rankers.indexOf(numbers.recommendation.shown)) : 0;
  return Math.max(0, shown);
}

function chosenRanker() {
  return others.length ? others[Number(byId("of-ranker").value)] : BASE;
}
function chosenMeasure() {
  return others.length ? Number(byId("of-measure").value) : 0;
}

function showChanges() {
  const ranker = chosenRanker();
  const measure = chosenMeasure();
  if (others.length) drawChanges(numbers.rankers[ranker], numbers.measures[measure]);
  fillQueries(ranker, measure);
}

function drawChanges(ranker, measure) {
  if (!numbers.changes[measure]) return; // a line above says why
  const { values, won, lost, tied } = numbers.changes[measure][ranker];
  const shown = values.length < won + lost + tied ? `, ${values.length} of them drawn` : "";
  byId("changes-title").textContent = `${measure}: ${ranker} minus ${numbers.baseline}, from the largest loss to the largest win`;
  byId("changes-about").textContent = `${won + lost + tied} queries: ${lost} lost, ${tied} tied, ${won} won${shown}`;
  show(byId("changes"), {
    draw: "bars", height: 230, label: `${byId("changes-title").textContent}: ${byId("changes-about").textContent}`,
    x: { ticks: [] }, y: { title: "change", zero: true }, value: "change",
    series: [{ name: ranker, x: values.map((_, place) => place + 1), y: values }],
  });
  byId("changes").parentElement.querySelector("details.numbers").open = false;
}

// The queries of the table, with the values of the chosen ranker and measure.
function queryValues(ranker, measure) {
  return numbers.lists.queries.map((query, place) => {
    const base = query.values[BASE][measure];
    const own = query.values[ranker][measure];
    return { query, place, base, own, change: base === null || own === null ? null : own - base };
  });
}

function fillQueries(ranker, measure) {
  const table = byId("query-table");
  const buttons = [...table.tHead.querySelectorAll("button")];
  const names = others.length ? ["Query", "Change", numbers.rankers[ranker], numbers.baseline] : ["Query", numbers.baseline];
  names.forEach((name, place) => { buttons[place].textContent = name; });
  const rows = queryValues(ranker, measure);
  const largest = Math.max(...rows.map((row) => Math.abs(row.change || 0)), 0);
  rows.sort((a, b) => Math.abs(b.change || 0) - Math.abs(a.change || 0));
  table.tBodies[0].replaceChildren(...rows.map((row) => queryRow(row, largest)));
  sortAgain(table);
  findQueries();
}

function queryRow({ query, place, base, own, change }, largest) {
  const name = String(query.qid);
  const button = element("button", { type: "button", className: "link", text: name, title: name, "data-query": place });
  const first = element("td", {}, button, ...query.about.filter(Boolean).slice(0, 1).map((text) => element("div", { className: "about", text, title: text })));
  first.dataset.value = name;
  const direction = change > 0 ? "n up" : change < 0 ? "n down" : "n";
  const against = others.length
    ? [cell(signed(change), change, direction), element("td", {}, bar(change, largest)), cell(fixed(own), own)]
    : [];
  return element("tr", {}, first, ...against, cell(fixed(base), base), cell(query.size, query.size), cell(query.fold, query.fold));
}

function queryRows() {
  const ranker = chosenRanker();
  const measure = chosenMeasure();
  const named = (place) => `${numbers.measures[measure]} ${numbers.rankers[place]}`;
  const places = others.length ? [ranker, BASE] : [BASE];
  return {
    columns: ["query", ...numbers.lists.query_columns, ...(others.length ? ["change"] : []), ...places.map(named), "documents", "fold"],
    rows: queryValues(ranker, measure).map(({ query, base, own, change }) =>
      [query.qid, ...query.about, ...(others.length ? [change, own, base] : [base]), query.size, query.fold]),
  };
}

// -------------------------------------------------------------------------------------------------------- finding one

let haystacks = []; // of each query: its id, its texts, and the ids and texts of its documents, in small letters

function textsOf(query) {
  const documents = query.docid.flatMap((name, document) => [name, ...(query.texts[document] || [])]);
  return [query.qid, ...query.about, ...documents].filter((text) => text !== null).join("\n").toLowerCase();
}

// Every word has to occur; an id that is exactly what was typed comes alone.
function findQueries() {
  const wanted = byId("find").value.trim().toLowerCase();
  const words = wanted.split(/\s+/).filter(Boolean);
  const rows = [...byId("query-table").tBodies[0].rows];
  const placeOf = (row) => Number(row.querySelector("[data-query]").dataset.query);
  const exact = rows.filter((row) => row.cells[0].dataset.value.toLowerCase() === wanted);
  const found = new Set(exact.length ? exact : rows.filter((row) => words.every((word) => haystacks[placeOf(row)].includes(word))));
  rows.forEach((row) => { row.hidden = !found.has(row); });
  byId("found").textContent = words.length ? `${found.size} of ${rows.length} queries` : "";
}
