// An opened query: its documents as two rankers order them, and why one document stands above another.

let labels = []; // every label that occurs, from the smallest
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
  byId("opened-texts").replaceChildren(...described(numbers.lists.query_columns, query.about));
  fillParts();
}

// Texts by the names of their columns, for a list of definitions; what is missing is left out.
function described(columns, texts) {
  return columns.flatMap((name, place) => (texts && texts[place] ? [element("dt", { text: name }), element("dd", { text: texts[place] })] : []));
}

// The documents of one side, in its order.
function inOrderOf(query, ranker) {
  return query.docid.map((_, document) => document)
    .filter((document) => query.rank[ranker][document] <= numbers.lists.documents)
    .sort((a, b) => query.rank[ranker][a] - query.rank[ranker][b]);
}

function listRows(side) {
  const { query } = opened;
  const ranker = Number(byId(side).value);
  return {
    columns: ["rank", "document", ...numbers.lists.document_columns, "label", "score"],
    rows: inOrderOf(query, ranker).map((document) => {
      const texts = query.texts[document] || numbers.lists.document_columns.map(() => null);
      return [query.rank[ranker][document], query.docid[document], ...texts, query.label[document], query.score[ranker][document]];
    }),
  };
}

// A document's title where there is one, or its id.
function titleOf(query, document) {
  const texts = query.texts[document];
  return (texts && texts[numbers.lists.title]) || query.docid[document];
}

function listOf(query, ranker, other) {
  const head = element("tr", {},
    ...[["#", "n"], ["Document", ""], ["Label", ""], ["Score", "n score"], ["\u2195", "n"]].map(([text, className]) =>
      element("th", { className, text, scope: "col" })));
  const rows = inOrderOf(query, ranker).map((document) => documentRow(query, document, ranker, other));
  return [element("thead", {}, head), element("tbody", {}, ...rows)];
}

function documentRow(query, document, ranker, other) {
  const rank = query.rank[ranker][document];
  const moved = query.rank[other][document] - rank;
  const name = query.docid[document];
  const title = titleOf(query, document);
  const button = element("button", { type: "button", className: "link", text: title, title, "data-document": document });
  const id = title === name ? [] : [element("div", { className: "about", text: name, title: name })];
  const arrow = moved > 0 ? `\u25b2${moved}` : moved < 0 ? `\u25bc${-moved}` : "=";
  return element("tr", { className: document === opened.document ? "chosen" : "" },
    cell(rank, rank), element("td", {}, button, ...id), element("td", {}, chip(query.label[document])),
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
  const named = (place) => `${titleOf(query, place)} (label ${query.label[place]})`;
  const than = versus === null ? "the average document" : named(versus);
  byId("document-title").textContent = `Why ${named(document)} stands above or below ${than}`;
  const left = Number(byId("left").value);
  const others = query.docid.map((_, place) => place).filter((place) => place !== document)
    .sort((a, b) => query.rank[left][a] - query.rank[left][b]);
  byId("versus").replaceChildren(element("option", { value: "", text: "the average document of the query" }),
    ...others.map((place) => element("option", { value: place, text: named(place) })));
  byId("versus").value = versus === null ? "" : String(versus);
  const shown = versus === null ? [document] : [document, versus];
  byId("document-texts").replaceChildren(...shown.map((place) => {
    const texts = described(numbers.lists.document_columns, query.texts[place]);
    return texts.length ? element("dl", {}, element("dt", { text: "id" }), element("dd", { text: query.docid[place] }), ...texts) : "";
  }));
  for (const side of ["left", "right"]) {
    const ranker = Number(byId(side).value);
    byId(`${side}-parts`).replaceChildren(...partsOf(query, document, versus, ranker));
  }
}

// What features add to the score of one document over that of another one, or over the average document: null where the
// ranker is no sum over features, undefined where the features of one of the two are not in this file.
function contributions(query, document, versus, name) {
  const x = query.x[document];
  const against = versus === null ? query.mean : query.x[versus];
  if (Object.hasOwn(numbers.lists.weights, name)) {
    const weights = numbers.lists.weights[name][query.fold - 1];
    return x && against ? weights.map((weight, place) => weight * (x[place] - against[place])) : undefined;
  }
  if (!Object.hasOwn(query.parts, name)) return null;
  const own = query.parts[name][document];
  const other = versus === null ? own && own.map(() => 0) : query.parts[name][versus];
  return own && other ? own.map((part, place) => part - other[place]) : undefined;
}

// These contributions with the values of both documents, the largest first; or a sentence that says why there are none.
function compared(query, document, versus, ranker) {
  if (!numbers.lists.explained) return "There is no ranker that is a sum over features, or no space for features in this file.";
  const parts = contributions(query, document, versus, ranker);
  if (parts === null) return "Not an additive ranker of this run: its score is no sum over features.";
  if (parts === undefined) return "Too low in every ranking: the features are not in this file.";
  const x = query.x[document];
  const against = versus === null ? query.mean : query.x[versus];
  return parts.map((part, place) => ({ name: numbers.lists.features[place], x: x[place], against: against[place], part }))
    .filter(({ part }) => part !== 0)
    .sort((a, b) => Math.abs(b.part) - Math.abs(a.part));
}

function partsOf(query, document, versus, number) {
  const ranker = numbers.rankers[number];
  const parts = compared(query, document, versus, ranker);
  if (typeof parts === "string") return [element("h4", { text: ranker }), element("p", { className: "small soft", text: parts })];
  const largest = parts.length ? Math.abs(parts[0].part) : 0;
  const other = versus === null ? "Mean" : "Other";
  const rows = parts.slice(0, TOP_FEATURES).map(({ name, x, against, part }) =>
    element("tr", {}, element("td", { className: "clip", text: name, title: name }),
      cell(short(x), undefined, "n score"), cell(short(against), undefined, "n score"),
      cell(signed(part), undefined, part > 0 ? "n up" : "n down"), element("td", { className: "score" }, bar(part, largest))));
  const head = element("tr", {}, ...[["Feature", ""], ["Value", "n score"], [other, "n score"], ["Adds", "n"], ["", "score"]].map(
    ([text, className]) => element("th", { className, text, scope: "col" })));
  const total = (some) => some.reduce((sum, { part }) => sum + part, 0);
  const left = parts.length - TOP_FEATURES;
  const more = left > 0 ? `${left} more ${left > 1 ? "features add" : "feature adds"} ${signed(total(parts.slice(TOP_FEATURES)))}.` : "";
  const rank = query.rank[number];
  const places = versus === null ? `rank ${rank[document]}` : `rank ${rank[document]} against ${rank[versus]}`;
  const whole = { columns: ["feature", "value", other.toLowerCase(), "adds"], rows: parts.map(({ name, x, against, part }) => [name, x, against, part]) };
  return [element("h4", { text: `${ranker}: ${signed(total(parts))}, ${places}` }),
    element("div", { className: "tools" }, saveButton(`query ${query.qid} ${ranker} features`, () => whole)),
    element("div", { className: "box" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))),
    element("p", { className: "small soft", text: more })];
}
