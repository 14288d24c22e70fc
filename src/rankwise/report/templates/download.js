// Any table as a CSV file, made here from the numbers behind it and not from the digits that are shown.

// RFC 4180: CRLF between records, quotes around cells that need them, quotes inside doubled. A text that a spreadsheet
// would take for a formula gets an apostrophe in front; numbers stay numbers, with all of their digits.
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r\n]/.test(String(value)) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvOf({ columns, rows }) {
  return [columns, ...rows].map((row) => row.map(csvCell).join(",") + "\r\n").join("");
}

function save(name, table) {
  const address = URL.createObjectURL(new Blob([csvOf(table)], { type: "text/csv" }));
  const link = element("a", { href: address, download: `${name.replace(/[^\w@.-]+/g, "-")}.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// A button that saves what `rows()` gives when it is clicked.
function saveButton(name, rows) {
  const made = element("button", { type: "button", className: "button save", text: "CSV", title: `Save ${name} as a CSV file`, "data-save": name });
  made.addEventListener("click", () => save(name, rows()));
  return made;
}

// The button of a table stands above its box, at the right.
function makeSavable(table, name, rows) {
  (table.closest(".box") || table).before(element("div", { className: "tools" }, saveButton(name, rows)));
}

// Below a figure, its numbers; the table is made anew whenever somebody opens it, for a figure may change.
function numbersBelow(place, name, figure) {
  const details = element("details", { className: "numbers" }, element("summary", { text: "Numbers" }));
  details.addEventListener("toggle", () => {
    details.replaceChildren(details.firstElementChild);
    if (!details.open) return;
    const { columns, rows } = figureRows(figure());
    const head = element("tr", {}, ...columns.map((text) => element("th", { text, scope: "col" })));
    const lines = rows.map((row) => element("tr", {}, ...row.map((value) =>
      typeof value === "number" ? cell(short(value), value) : element("td", { className: "clip", text: value ?? NOTHING }))));
    const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...lines));
    details.append(element("div", { className: "box tall", tabindex: "0", role: "region", "aria-label": "Numbers" }, table));
    makeSavable(table, name, () => figureRows(figure()));
  });
  place.after(details);
  return details;
}
