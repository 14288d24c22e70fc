"use strict";
// Themes, and figures that follow them: colours in figures are roles, which become colours when they are drawn.

const numbers = JSON.parse(document.getElementById("numbers").textContent);
const byId = (id) => document.getElementById(id);

const COLOUR_KEYS = new Set(["color", "colorscale", "fillcolor", "bgcolor"]);

const wantsDark = window.matchMedia("(prefers-color-scheme: dark)");
function theme() {
  return document.documentElement.dataset.theme || (wantsDark.matches ? "dark" : "light");
}

// "@0" is the first ranker's colour, "@ink" the colour of text, ...: all of them are the style's own.
function colourOf(role) {
  const name = role.slice(1);
  const property = /^\d+$/.test(name) ? `--c${name}` : name === "paper" ? "--card" : `--${name}`;
  return getComputedStyle(document.documentElement).getPropertyValue(property).trim();
}

// A copy of a figure with colours for its roles; only where colours stand, for names are strangers' text.
function painted(value, isColour = false) {
  if (typeof value === "string") return isColour && value.startsWith("@") ? colourOf(value) : value;
  if (Array.isArray(value)) return value.map((item) => painted(item, isColour));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, painted(item, isColour || COLOUR_KEYS.has(key))]),
  );
}

function axis(own = {}) {
  const grid = colourOf("@rule");
  return {
    gridcolor: grid, linecolor: grid, zerolinecolor: colourOf("@faint"), zeroline: false, fixedrange: true,
    automargin: true, ...own, title: { standoff: 8, ...(own.title || {}) },
  };
}

// On the screen a figure follows its place; paper has one width, which has to be known at once.
function draw(place, figure) {
  const { xaxis, yaxis, ...layout } = figure.layout;
  const printing = document.documentElement.classList.contains("printing");
  const family = getComputedStyle(document.body).fontFamily;
  Plotly.react(place, painted(figure.data), {
    height: figure.height, ...(printing ? { width: place.clientWidth } : { autosize: true }), paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: false,
    font: { family, size: 12, color: colourOf("@ink") },
    hoverlabel: { font: { family } },
    margin: { l: 8, r: 8, t: 8, b: 8 }, hovermode: "closest",
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 11 } },
    xaxis: axis(xaxis), yaxis: axis(yaxis), ...layout,
  }, { displayModeBar: false, responsive: true });
}

const drawn = new Map(); // place -> figure, to be drawn again when the theme changes
function show(place, figure) {
  drawn.set(place, figure);
  draw(place, figure);
}

function repaint() {
  const button = byId("theme");
  const dark = theme() === "dark";
  button.textContent = dark ? "Light" : "Dark";
  button.setAttribute("aria-pressed", String(dark));
  for (const [place, figure] of drawn) draw(place, figure);
  document.dispatchEvent(new Event("repainted"));
}

function setTheme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  repaint();
}
