// An opened query: its documents as two rankers order them, and what the features add to one document's score.

const labels = [...new Set(numbers.lists.queries.flatMap((query) => query.label))].sort((a, b) => a - b);
const TOP_FEATURES = 10;
const opened = { query: null, document: null };

function openQuery(place, left, right) {
  opened.query = numbers.lists.queries[place];
  opened.document = null;
  options(byId("left"), numbers.rankers, left);
  options(byId("right"), numbers.rankers, right);
  byId("opened").hidden = false;
  fillLists();
  byId("opened").focus({ preventScroll: true });
  byId("opened").scrollIntoView({ block: "start" });
}

function closeQuery() {
  byId("opened").hidden = true;
  document.querySelector(`[data-query="${numbers.lists.queries.indexOf(opened.query)}"]`).focus();
  opened.query = null;
}

function fillLists() {
  const query = opened.query;
  if (!query) return;
  const measure = chosenMeasure();
  byId("opened-title").textContent = `Query ${query.qid}`;
  const left = Number(byId("left").value);
  const right = Number(byId("right").value);
  const missing = query.left_out ? ` ${query.left_out} documents that are further down in every list are left out.` : "";
  byId("opened-about").textContent =
    `${query.size} documents, tested in fold ${query.fold}. Arrows: places higher or lower than in the other list. ` +
    `Equal scores stand as they came.${missing} Choose a document to see what its score is made of.`;
  for (const [side, ranker, other] of [["left", left, right], ["right", right, left]]) {
    const value = query.values[ranker][measure];
    byId(`${side}-title`).textContent = `${numbers.rankers[ranker]}: ${numbers.measures[measure]} ${fixed(value)}`;
    byId(`${side}-list`).replaceChildren(...listOf(query, ranker, other));
  }
  fillParts();
}

function listOf(query, ranker, other) {
  const head = element("tr", {},
    ...[["#", "n"], ["Document", ""], ["Label", ""], ["Score", "n score"], ["\u2195", "n"]].map(([text, className]) =>
      element("th", { className, text, scope: "col" })));
  const rows = query.docid.map((_, document) => document)
    .filter((document) => query.rank[ranker][document] <= numbers.lists.documents)
    .sort((a, b) => query.rank[ranker][a] - query.rank[ranker][b])
    .map((document) => documentRow(query, document, ranker, other));
  return [element("thead", {}, head), element("tbody", {}, ...rows)];
}

function documentRow(query, document, ranker, other) {
  const rank = query.rank[ranker][document];
  const moved = query.rank[other][document] - rank;
  const name = query.docid[document];
  const button = element("button", { type: "button", className: "link", text: name, title: name, "data-document": document });
  const arrow = moved > 0 ? `\u25b2${moved}` : moved < 0 ? `\u25bc${-moved}` : "=";
  return element("tr", { className: document === opened.document ? "chosen" : "" },
    cell(rank, rank), element("td", {}, button), element("td", {}, chip(query.label[document])),
    cell(short(query.score[ranker][document]), undefined, "n score"),
    cell(arrow, undefined, moved > 0 ? "n up" : moved < 0 ? "n down" : "n"));
}

// A label's chip: the higher, the fuller.
function chip(label) {
  const made = element("span", { className: "chip", text: String(label) });
  const share = labels.length > 1 ? labels.indexOf(label) / (labels.length - 1) : 1;
  made.style.background = `color-mix(in srgb, var(--accent) ${Math.round(6 + 84 * share)}%, var(--card))`;
  made.style.color = share > 0.5 ? "var(--card)" : "var(--ink)";
  return made;
}

function chooseDocument(document, list) {
  opened.document = document;
  fillLists();
  list.querySelector(`[data-document="${document}"]`).focus({ preventScroll: true });
  byId("document").scrollIntoView({ block: "nearest" });
}

function fillParts() {
  const { query, document } = opened;
  byId("document").hidden = document === null;
  if (document === null) return;
  byId("document-title").textContent = `Document ${query.docid[document]}, label ${query.label[document]}`;
  for (const side of ["left", "right"]) {
    const ranker = Number(byId(side).value);
    byId(`${side}-parts`).replaceChildren(...partsOf(query, document, numbers.rankers[ranker]));
  }
}

function partsOf(query, document, ranker) {
  const title = element("h4", { text: ranker });
  const folds = numbers.lists.weights[ranker];
  if (!numbers.lists.explained) return [title, element("p", { className: "small soft", text: "There is no linear ranker, or no space for features in this file." })];
  if (!folds) return [title, element("p", { className: "small soft", text: "Not a linear ranker of this run: its score is no sum over features." })];
  const x = query.x[document];
  if (!x) return [title, element("p", { className: "small soft", text: "Too low in every ranking: its features are not in this file." })];
  const weights = folds[query.fold - 1];
  const parts = weights.map((weight, place) => ({ place, weight, part: weight * (x[place] - query.mean[place]) }))
    .filter(({ part }) => part !== 0)
    .sort((a, b) => Math.abs(b.part) - Math.abs(a.part));
  const largest = parts.length ? Math.abs(parts[0].part) : 0;
  const rows = parts.slice(0, TOP_FEATURES).map(({ place, part }) => {
    const name = numbers.lists.features[place];
    return element("tr", {}, element("td", { className: "clip", text: name, title: name }),
      cell(short(x[place]), undefined, "n score"), cell(short(query.mean[place]), undefined, "n score"),
      cell(signed(part), undefined, part > 0 ? "n up" : "n down"), element("td", { className: "score" }, bar(part, largest)));
  });
  const head = element("tr", {}, ...[["Feature", ""], ["Value", "n score"], ["Mean", "n score"], ["Adds", "n"], ["", "score"]].map(
    ([text, className]) => element("th", { className, text, scope: "col" })));
  const rest = parts.slice(TOP_FEATURES).reduce((sum, { part }) => sum + part, 0);
  const note = parts.length > TOP_FEATURES ? `${parts.length - TOP_FEATURES} more features add ${signed(rest)} together.` : "";
  return [title, element("div", { className: "box" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))),
    element("p", { className: "small soft", text: note })];
}
