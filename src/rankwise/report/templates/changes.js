// Wins and losses against the baseline, query by query, for the ranker and the measure that the reader chooses.

const BASE = numbers.rankers.indexOf(numbers.baseline);
const others = numbers.rankers.map((_, place) => place).filter((place) => place !== BASE);

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
  const { values, won, lost, tied } = numbers.changes[measure][ranker];
  const shown = values.length < won + lost + tied ? `, ${values.length} of them drawn` : "";
  byId("changes-title").textContent = `${measure}: ${ranker} less ${numbers.baseline}, from the largest loss to the largest win`;
  byId("changes-about").textContent = `${won + lost + tied} queries: ${lost} lost, ${tied} tied, ${won} won${shown}`;
  show(byId("changes"), {
    data: [{
      type: "bar", x: values.map((_, place) => place + 1), y: values,
      marker: { color: values.map((value) => (value < 0 ? "@less" : "@more")), line: { width: 0 } },
      hovertemplate: "%{y:+.4f}<extra></extra>",
    }],
    layout: {
      bargap: 0.15, showlegend: false,
      xaxis: { showgrid: false, showticklabels: false },
      yaxis: { title: { text: "change" }, zeroline: true },
    },
    height: 230,
  });
}

function fillQueries(ranker, measure) {
  const table = byId("query-table");
  const buttons = [...table.tHead.querySelectorAll("button")];
  const names = others.length ? ["Query", "Change", numbers.rankers[ranker], numbers.baseline] : ["Query", numbers.baseline];
  names.forEach((name, place) => { buttons[place].textContent = name; });
  const rows = numbers.lists.queries.map((query, place) => {
    const base = query.values[BASE][measure];
    const own = query.values[ranker][measure];
    return { query, place, base, own, change: base === null || own === null ? null : own - base };
  });
  const largest = Math.max(...rows.map((row) => Math.abs(row.change || 0)), 0);
  rows.sort((a, b) => Math.abs(b.change || 0) - Math.abs(a.change || 0));
  table.tBodies[0].replaceChildren(...rows.map((row) => queryRow(row, largest)));
  sortAgain(table);
}

function queryRow({ query, place, base, own, change }, largest) {
  const name = String(query.qid);
  const button = element("button", { type: "button", className: "link", text: name, title: name, "data-query": place });
  const first = element("td", {}, button);
  first.dataset.value = name;
  const direction = change > 0 ? "n up" : change < 0 ? "n down" : "n";
  const against = others.length
    ? [cell(signed(change), change, direction), element("td", {}, bar(change, largest)), cell(fixed(own), own)]
    : [];
  return element("tr", {}, first, ...against, cell(fixed(base), base), cell(query.size, query.size), cell(query.fold, query.fold));
}
