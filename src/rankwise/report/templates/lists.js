// An opened query: its documents as two rankers order them, and why one document stands above another.

const labels = [...new Set(numbers.lists.queries.flatMap((query) => query.label))].sort((a, b) => a - b);
const TOP_FEATURES = 10;
const opened = { query: null, document: null, versus: null };

function openQuery(place, left, right) {
  opened.query = numbers.lists.queries[place];
  [opened.document, opened.versus] = numbers.lists.explained ? firstTwo(opened.query, left) : [null, null];
  options(byId("left"), numbers.rankers, left);
  options(byId("right"), numbers.rankers, right);
  byId("opened").hidden = false;
  fillLists();
  byId("opened").focus({ preventScroll: true });
  byId("opened").scrollIntoView({ block: "start" });
}

// The first two documents of a ranker's list: why is the first above the second?
function firstTwo(query, ranker) {
  const order = query.docid.map((_, document) => document).sort((a, b) => query.rank[ranker][a] - query.rank[ranker][b]);
  return order.length > 1 ? order.slice(0, 2) : [null, null];
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
    `Equal scores stand as they came.${missing} Choose a document to see why it stands where it does.`;
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
  if (opened.versus === document) opened.versus = null;
  fillLists();
  list.querySelector(`[data-document="${document}"]`).focus({ preventScroll: true });
  byId("document").scrollIntoView({ block: "nearest" });
}

function chooseVersus() {
  opened.versus = byId("versus").value === "" ? null : Number(byId("versus").value);
  fillParts();
}

function fillParts() {
  const { query, document, versus } = opened;
  byId("document").hidden = document === null;
  if (document === null) return;
  const named = (place) => `${query.docid[place]} (label ${query.label[place]})`;
  const than = versus === null ? "the average document" : named(versus);
  byId("document-title").textContent = `Why ${named(document)} stands above or below ${than}`;
  const left = Number(byId("left").value);
  const others = query.docid.map((_, place) => place).filter((place) => place !== document)
    .sort((a, b) => query.rank[left][a] - query.rank[left][b]);
  byId("versus").replaceChildren(element("option", { value: "", text: "the average document of the query" }),
    ...others.map((place) => element("option", { value: place, text: named(place) })));
  byId("versus").value = versus === null ? "" : String(versus);
  for (const side of ["left", "right"]) {
    const ranker = Number(byId(side).value);
    byId(`${side}-parts`).replaceChildren(...partsOf(query, document, versus, ranker));
  }
}

// What features add to a document's score over the average document: null where the ranker is no sum over features,
// undefined where the document's features are not in this file.
function contributions(query, document, name) {
  const folds = numbers.lists.weights[name];
  if (folds) {
    const x = query.x[document];
    return x ? folds[query.fold - 1].map((weight, place) => weight * (x[place] - query.mean[place])) : undefined;
  }
  const additive = query.parts[name];
  return additive ? additive[document] || undefined : null;
}

function partsOf(query, document, versus, number) {
  const ranker = numbers.rankers[number];
  const said = (text) => [element("h4", { text: ranker }), element("p", { className: "small soft", text })];
  if (!numbers.lists.explained) return said("There is no ranker that is a sum over features, or no space for features in this file.");
  const own = contributions(query, document, ranker);
  if (own === null) return said("Not an additive ranker of this run: its score is no sum over features.");
  const other = versus === null ? own.map(() => 0) : contributions(query, versus, ranker);
  if (own === undefined || other === undefined) return said("Too low in every ranking: the features are not in this file.");
  const x = query.x[document];
  const against = versus === null ? query.mean : query.x[versus];
  const parts = own.map((value, place) => ({ place, part: value - other[place] }))
    .filter(({ part }) => part !== 0)
    .sort((a, b) => Math.abs(b.part) - Math.abs(a.part));
  const largest = parts.length ? Math.abs(parts[0].part) : 0;
  const rows = parts.slice(0, TOP_FEATURES).map(({ place, part }) => {
    const name = numbers.lists.features[place];
    return element("tr", {}, element("td", { className: "clip", text: name, title: name }),
      cell(short(x[place]), undefined, "n score"), cell(short(against[place]), undefined, "n score"),
      cell(signed(part), undefined, part > 0 ? "n up" : "n down"), element("td", { className: "score" }, bar(part, largest)));
  });
  const head = element("tr", {}, ...[["Feature", ""], ["Value", "n score"], [versus === null ? "Mean" : "Other", "n score"], ["Adds", "n"], ["", "score"]].map(
    ([text, className]) => element("th", { className, text, scope: "col" })));
  const rest = parts.slice(TOP_FEATURES).reduce((sum, { part }) => sum + part, 0);
  const sum = parts.reduce((total, { part }) => total + part, 0);
  const left = parts.length - TOP_FEATURES;
  const more = left > 0 ? `${left} more ${left > 1 ? "features add" : "feature adds"} ${signed(rest)}.` : "";
  const rank = query.rank[number];
  const places = versus === null ? `rank ${rank[document]}` : `rank ${rank[document]} against ${rank[versus]}`;
  return [element("h4", { text: `${ranker}: ${signed(sum)}, ${places}` }),
    element("div", { className: "box" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))),
    element("p", { className: "small soft", text: more })];
}
