// Small things that tables are made of, and sorting by their headers. Text is only ever set as text.

function element(tag, options = {}, ...children) {
  const { className, text, ...attributes } = options;
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const NOTHING = "\u2013";
const fixed = (value, places = 3) => (value === null ? NOTHING : value.toFixed(places));
const signed = (value, places = 3) =>
  value === null ? NOTHING : (value < 0 ? "\u2212" : "+") + Math.abs(value).toFixed(places);
const short = (value) => (value === null ? NOTHING : Number(value.toPrecision(4)).toString().replace("-", "\u2212"));

function cell(text, value, className = "n") {
  const made = element("td", { className, text });
  if (value !== undefined && value !== null) made.dataset.value = value;
  return made;
}

function options(select, names, chosen) {
  select.replaceChildren(...names.map((name, place) => element("option", { value: place, text: name })));
  select.value = String(chosen);
}

// A bar to the right of the middle for more than 0, to the left for less.
function bar(value, largest) {
  const made = element("span", { className: "bar", "aria-hidden": "true" });
  if (value === null || !largest) return made;
  const part = element("i", { className: value < 0 ? "down" : "up" });
  const width = (50 * Math.abs(value)) / largest;
  part.style.width = width + "%";
  part.style.left = (value < 0 ? 50 - width : 50) + "%";
  made.append(part);
  return made;
}

function keyOf(row, column) {
  const found = row.cells[column];
  if (found.classList.contains("n")) {
    const value = found.dataset.value === undefined ? found.textContent : found.dataset.value;
    return value === "" || Number.isNaN(Number(value)) ? null : Number(value);
  }
  return found.dataset.value === undefined ? found.textContent.trim() : found.dataset.value;
}

const inOrder = new Intl.Collator(undefined, { numeric: true }).compare;

// Rows without a value stay last, whichever way.
function sortRows(table, column, descending) {
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row) => [keyOf(row, column), row]);
  keyed.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    const order = typeof a === "number" && typeof b === "number" ? a - b : inOrder(String(a), String(b));
    return descending ? -order : order;
  });
  body.append(...keyed.map(([, row]) => row));
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const was = head.getAttribute("aria-sort");
      // numbers from the largest first, names from A
      const descending = was === "none" ? head.classList.contains("n") : was === "ascending";
      for (const other of heads) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sortRows(table, column, descending);
    });
  });
}

// Sort as the headers say, after the rows were made anew.
function sortAgain(table) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const order = head.getAttribute("aria-sort");
    if (order && order !== "none") sortRows(table, column, order === "descending");
  });
}
