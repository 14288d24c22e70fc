"use strict";
// The numbers of the page, and its themes.

const byId = (id) => document.getElementById(id);
let numbers = null; // everything that scripts read, unpacked by start()

async function unpacked() {
  const bytes = Uint8Array.from(atob(byId("numbers").textContent), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

const wantsDark = window.matchMedia("(prefers-color-scheme: dark)");
function theme() {
  return document.documentElement.dataset.theme || (wantsDark.matches ? "dark" : "light");
}

function nameTheme() {
  const dark = theme() === "dark";
  byId("theme").textContent = dark ? "Light" : "Dark";
  byId("theme").setAttribute("aria-pressed", String(dark));
}

function setTheme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  nameTheme();
}
