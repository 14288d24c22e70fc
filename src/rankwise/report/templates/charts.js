// Figures as SVG: lines, dots with whiskers, bars, and maps of colored cells. Colors are the style's own: a theme
// changes without drawing. Sizes are those of the place: letters stay as large on a phone.

const SVG = "http://www.w3.org/2000/svg";
const LETTERS = 12; // pixels
const NEAR = 28; // pixels around a mark in which the pointer finds it

function shape(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const pen = document.createElement("canvas").getContext("2d");
function widthOf(text) {
  pen.font = `${LETTERS}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

// A text cut to a width; who points at it sees all of it.
function label(text, attributes, room = Infinity) {
  let shown = text;
  while (shown.length > 1 && widthOf(shown) > room) shown = shown.slice(0, -2) + "\u2026";
  const made = shape("text", attributes, shown);
  if (shown !== text) made.append(shape("title", {}, text));
  return made;
}

const rgb = (color) => `var(--c${color % 8})`;
const tidy = (value) => Number(value.toPrecision(10));

// Round numbers between two ends, about as many as asked for.
function roundNumbers(low, high, many) {
  const rough = (high - low) / Math.max(1, many);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((one) => one * power >= rough * 0.999) * power;
  const found = [];
  for (let place = Math.ceil(low / step - 1e-9); place * step <= high + step * 1e-9; place += 1) found.push(tidy(place * step));
  return found;
}

function tickText(value, axis) {
  if (axis.percent) return `${tidy(value * 100)}%`;
  const size = Math.abs(value);
  return (size && (size < 1e-3 || size >= 1e5) ? value.toExponential() : String(tidy(value))).replace("-", "\u2212");
}

// What an axis covers: named places, or the numbers with a little air; one that is "zero" includes 0.
function extent(axis, values) {
  if (axis.names) return [-0.5, axis.names.length - 0.5];
  if (axis.range) return axis.range;
  const known = values.filter((value) => value !== null && (!axis.log || value > 0)).map(axis.log ? Math.log10 : Number);
  if (axis.zero) known.push(0);
  if (!known.length) return [0, 1];
  const low = Math.min(...known);
  const high = Math.max(...known);
  const air = (high - low || Math.abs(high) || 1) * 0.05;
  return [axis.zero && low === 0 ? 0 : low - air, axis.zero && high === 0 ? 0 : high + air];
}

function ticksOf(axis, [low, high], many) {
  if (axis.names) return axis.names.map((name, place) => [place, name]);
  if (axis.ticks) return axis.ticks.map((value) => [value, tickText(value, axis)]);
  if (!axis.log) return roundNumbers(low, high, many).map((value) => [value, tickText(value, axis)]);
  const every = Math.ceil((high - low) / Math.max(1, many)) || 1;
  const powers = [];
  for (let power = Math.ceil(low); power <= high; power += every) powers.push([10 ** power, tickText(10 ** power, axis)]);
  return powers;
}

function scale(axis, [low, high], from, to) {
  const [first, last] = axis.reversed ? [high, low] : [low, high];
  return (value) => from + (((axis.log ? Math.log10(value) : value) - first) / (last - first)) * (to - from);
}

// ------------------------------------------------------------------------------------------------------ lines and dots

function plot(figure, width) {
  const { x, y, series, height } = figure;
  const over = (axis, ...keys) => series.flatMap((one) => keys.flatMap((key) => (key in one ? one[key] : [])));
  const across = extent(x, over(x, "x", ...(figure.lying ? ["low", "high"] : [])));
  const up = extent(y, over(y, "y", ...(figure.lying ? [] : ["low", "high"])));
  const upTicks = ticksOf(y, up, height / 55);
  const room = Math.min(y.names ? width * 0.42 : 90, Math.max(...upTicks.map(([, text]) => widthOf(text)), 0) + 2);
  const lines = Math.max(1, ...(x.names || []).map((name) => name.split("\n").length));
  const left = room + 8 + (y.title ? 18 : 0);
  const below = 8 + lines * 15 + (x.title ? 20 : 0);
  const frame = { left, right: width - 10, top: 8, bottom: height - below };
  const acrossTicks = ticksOf(x, across, (frame.right - left) / 80);
  const atX = scale(x, across, frame.left, frame.right);
  const atY = scale(y, up, y.names ? frame.top : frame.bottom, y.names ? frame.bottom : frame.top);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": figure.label });
  const marks = [];
  svg.append(...frameOf(figure, frame, { acrossTicks, upTicks, atX, atY, room }));
  for (const one of series) svg.append(seriesOf(one, figure, atX, atY, marks));
  return { svg, marks };
}

function frameOf({ x, y }, frame, { acrossTicks, upTicks, atX, atY, room }) {
  const { left, right, top, bottom } = frame;
  const grid = [];
  const texts = [];
  for (const [value, text] of upTicks) {
    if (!y.names) grid.push(shape("line", { class: value === 0 && y.zero ? "zero" : "grid", x1: left, x2: right, y1: atY(value), y2: atY(value) }));
    texts.push(label(text, { class: "ytick", x: left - 6, y: atY(value) + 4, "text-anchor": "end" }, room));
  }
  const wide = (right - left) / Math.max(1, acrossTicks.length) - 4;
  for (const [value, text] of acrossTicks) {
    if (!x.names) grid.push(shape("line", { class: value === 0 && x.zero ? "zero" : "grid", x1: atX(value), x2: atX(value), y1: top, y2: bottom }));
    text.split("\n").forEach((part, line) => {
      texts.push(label(part, { class: "xtick", x: atX(value), y: bottom + 16 + 15 * line, "text-anchor": "middle" }, x.names ? wide : Infinity));
    });
  }
  const middle = (top + bottom) / 2;
  if (x.title) texts.push(label(x.title, { class: "title", x: (left + right) / 2, y: bottom + 16 + 15 * Math.max(1, ...acrossTicks.map(([, text]) => text.split("\n").length)) + 4, "text-anchor": "middle" }, right - left));
  if (y.title) texts.push(label(y.title, { class: "title", transform: `rotate(-90) translate(${-middle} 13)`, "text-anchor": "middle" }, bottom - top));
  return [...grid, shape("line", { class: "edge", x1: left, x2: right, y1: bottom, y2: bottom }), ...texts];
}

function seriesOf(one, figure, atX, atY, marks) {
  const group = shape("g", { class: `series dash${one.dash || 0}`, style: `--c: ${one.color === undefined ? "var(--accent)" : rgb(one.color)}` });
  const known = one.x.map((_, place) => place).filter((place) => one.x[place] !== null && one.y[place] !== null && !(figure.x.log && one.x[place] <= 0));
  const points = known.map((place) => ({ place, x: atX(one.x[place]), y: atY(one.y[place]) }));
  if (figure.draw === "lines") group.append(shape("polyline", { class: "line", points: points.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ") }));
  if (figure.draw === "bars") group.append(...bars(points, one, atY(0)));
  else if (figure.draw === "dots" || points.length <= 25) {
    for (const { place, x, y } of points) {
      const few = one.few && one.few[place] ? " few" : "";
      if (one.low && one.low[place] !== null && one.high[place] !== null) {
        const [from, to] = figure.lying ? [atX(one.low[place]), atX(one.high[place])] : [atY(one.low[place]), atY(one.high[place])];
        group.append(shape("line", { class: `reach${few}`, ...(figure.lying ? { x1: from, x2: to, y1: y, y2: y } : { x1: x, x2: x, y1: from, y2: to }) }));
      }
      group.append(mark(x, y, figure.draw === "dots" ? 3.6 : 2.2, one.shape, few));
    }
  }
  for (const { place, x, y } of points) marks.push({ x, y, text: said(one, place, figure) });
  return group;
}

// A dot, a square or a diamond: the ninth ranker has the color of the first and another shape.
function mark(x, y, size, kind = 0, few = "") {
  if (kind % 3 === 0) return shape("circle", { class: `dot${few}`, cx: x, cy: y, r: size });
  const turned = kind % 3 === 2 ? { transform: `rotate(45 ${x} ${y})` } : {};
  return shape("rect", { class: `dot${few}`, x: x - size, y: y - size, width: 2 * size, height: 2 * size, ...turned });
}

function bars(points, one, zero) {
  const wide = points.length > 1 ? Math.max(0.5, (points[1].x - points[0].x) * 0.85) : 12;
  return points.map(({ place, x, y }) =>
    shape("rect", { class: one.y[place] < 0 ? "bar-less" : "bar-more", x: x - wide / 2, width: wide, y: Math.min(y, zero), height: Math.abs(y - zero) }));
}

function number(value, axis) {
  return axis.percent ? `${(value * 100).toFixed(1)}%` : short(value);
}

const nameOf = ({ name, fold }) => (fold ? `${name}, fold ${fold}` : name);

// What is said about a mark: whose it is, where, and its interval.
function said(one, place, { x, y, lying }) {
  const names = (lying ? y : x).names;
  const where = names ? names[Math.round((lying ? one.y : one.x)[place])].replace("\n", ", ") : short(one.x[place]);
  const value = number((lying ? one.x : one.y)[place], lying ? x : y);
  const ends = one.low && one.low[place] !== null ? ` (${number(one.low[place], lying ? x : y)} to ${number(one.high[place], lying ? x : y)})` : "";
  return [nameOf(one), where, value + ends].filter(Boolean).join(": ");
}

// ------------------------------------------------------------------------------------------------- maps of colored cells

function heat({ rows, columns, values, low, high, height, label: about }, width) {
  const left = Math.min(width * 0.42, Math.max(...rows.map(widthOf), 0) + 10);
  const top = Math.min(110, Math.max(...columns.map(widthOf), 0) * 0.62 + 22);
  const right = width - Math.min(60, width * 0.12);
  const wide = (right - left) / columns.length;
  const tall = (height - top - 6) / rows.length;
  const largest = Math.max(...values.flat().map((value) => Math.abs(value || 0))) || 1;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": about });
  const marks = [];
  columns.forEach((name, column) => {
    const x = left + (column + 0.5) * wide;
    svg.append(label(name, { class: "xtick", transform: `translate(${x} ${top - 6}) rotate(-35)` }, Math.min(170, (width - x) / 0.82)));
  });
  rows.forEach((name, row) => {
    const y = top + row * tall;
    svg.append(label(name, { class: "ytick", x: left - 6, y: y + tall / 2 + 4, "text-anchor": "end" }, left - 8));
    values[row].forEach((value, column) => {
      const share = Math.round((100 * Math.abs(value || 0)) / largest);
      const color = `color-mix(in srgb, var(--${value < 0 ? "less" : "more"}) ${share}%, var(--card))`;
      const x = left + column * wide;
      svg.append(shape("rect", { class: "cell", x: x + 1, y: y + 0.5, width: Math.max(1, wide - 2), height: Math.max(1, tall - 1), style: `fill: ${color}` }));
      const folds = `folds: ${short(low[row][column])} to ${short(high[row][column])}`;
      marks.push({ x: x + wide / 2, y: y + tall / 2, near: wide, text: `${columns[column]}: ${name}: ${short(value)} (${folds})` });
    });
  });
  return { svg, marks };
}

// ------------------------------------------------------------------------------------------------------- on the page

const drawn = new Map(); // place -> figure, to be drawn again when the place has another width
const resized = new ResizeObserver((entries) => entries.forEach(({ target }) => draw(target)));

function show(place, figure) {
  drawn.set(place, figure);
  draw(place, true);
  resized.observe(place);
}

function draw(place, anew = false) {
  const figure = drawn.get(place);
  const width = Math.floor(place.clientWidth);
  if (width < 40 || (!anew && place.dataset.width === String(width))) return;
  place.dataset.width = width;
  const { svg, marks } = figure.draw === "heat" ? heat(figure, width) : plot(figure, width);
  const tip = element("div", { className: "tip", hidden: "" });
  place.replaceChildren(...(figure.legend ? [legend(figure.series)] : []), svg, tip);
  svg.addEventListener("pointermove", (event) => point(event, svg, marks, tip));
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
}

function legend(series) {
  const names = new Map(series.map((one) => [one.name, one]));
  const items = [...names.values()].map((one) => {
    const item = element("li", { text: one.name });
    item.style.setProperty("--key", rgb(one.color));
    return item;
  });
  return element("ul", { className: "keys" }, ...items);
}

// The nearest mark, told beside the pointer.
function point(event, svg, marks, tip) {
  const box = svg.getBoundingClientRect();
  const x = event.clientX - box.left;
  const y = event.clientY - box.top;
  let best = null;
  let least = Infinity;
  for (const one of marks) {
    const away = Math.hypot(one.x - x, one.y - y);
    if (away < least && away < (one.near || NEAR)) [best, least] = [one, away];
  }
  tip.hidden = !best;
  if (!best) return;
  tip.textContent = best.text;
  tip.style.left = `${Math.max(0, Math.min(best.x + 10, box.width - tip.offsetWidth - 4))}px`;
  tip.style.top = `${svg.offsetTop + Math.max(0, best.y - tip.offsetHeight - 10)}px`;
}

// The same figure as a table, for those who do not see it and for other programs.
function figureRows(figure) {
  if (figure.draw === "heat") {
    const rows = figure.rows.flatMap((row, r) => figure.columns.map((column, c) => [row, column, figure.values[r][c], figure.low[r][c], figure.high[r][c]]));
    return { columns: ["feature", "ranker", "value", "low", "high"], rows };
  }
  const { x, y, lying } = figure;
  const names = (lying ? y : x).names;
  const where = (one, place) => (names ? names[Math.round((lying ? one.y : one.x)[place])].replace("\n", ", ") : one.x[place]);
  const whiskers = figure.series.some((one) => one.low);
  const rows = figure.series.flatMap((one) => one.x.map((_, place) =>
    [nameOf(one), where(one, place), (lying ? one.x : one.y)[place], ...(whiskers ? [one.low[place], one.high[place]] : [])]));
  return { columns: ["series", names ? figure.where || "group" : x.title || "place", figure.value || "value", ...(whiskers ? ["low", "high"] : [])], rows };
}
