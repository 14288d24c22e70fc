"""Every page of the built documentation on a phone: ``python3 run.py python -m tests.docs.site.widths [FOLDER]``.

Names the pages that are wider than the screen, with the elements that make them so, and what the browser said to the
console or asked a network for; exits with 1 if there is any. With a folder, it takes a picture of every page there,
light and dark.
"""

import sys
import time
from pathlib import Path
from typing import Any

from tests.report.browser import PATIENCE, Page, find_browser

SITE = Path(__file__).parents[3] / "build" / "docs"
WIDTH = 390
# What reaches beyond the screen, unless something around it scrolls or hides it.
BEYOND = """
(() => {
  const own = (node) => ["auto", "scroll", "hidden"].includes(getComputedStyle(node).overflowX);
  const held = (node) => node && node !== document.body && (own(node) || held(node.parentElement));
  const wide = [...document.querySelectorAll("article *")].filter((node) => {
    const box = node.getBoundingClientRect();
    return box.width > 0 && box.right > WIDTH + 1 && !held(node.parentElement);
  });
  const shown = wide.slice(0, 3).map((node) => `${node.tagName}.${node.className}: ${node.textContent.slice(0, 60)}`);
  return {width: document.documentElement.scrollWidth, shown};
})()
""".replace("WIDTH", str(WIDTH))


def open_page(page: Page, path: Path, scheme: str = "light") -> None:
    """Open a page of the site and wait until it is there."""
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.call("Page.navigate", url=path.resolve().as_uri())
    until = time.monotonic() + PATIENCE
    while page.run("document.readyState") != "complete" or page.run("location.href") != path.resolve().as_uri():
        if time.monotonic() > until:
            raise AssertionError(f"{path.name} was not there after {PATIENCE} s")
        time.sleep(0.02)


def too_wide(page: Page, paths: list[Path]) -> dict[str, Any]:
    """The pages that are wider than the screen, with their width and what makes them so."""
    found = {}
    for path in paths:
        open_page(page, path)
        measured = page.run(BEYOND)
        if measured["width"] > WIDTH or measured["shown"]:
            found[path.name] = measured
    return found


def main(arguments: list[str]) -> int:
    browser = find_browser()
    if browser is None:
        raise SystemExit("needs a browser: chromium on the path, or RANKWISE_BROWSER")
    paths = sorted(SITE.rglob("*.html"))
    with Page(browser, width=WIDTH, height=844) as phone:
        found = too_wide(phone, paths)
        for name, measured in found.items():
            print(f"{name}: {measured['width']} px, {measured['shown']}")
        said = [*phone.errors, *(address for address in phone.requests if not address.startswith(("file:", "data:")))]
        print(*said, sep="\n")
        for folder in map(Path, arguments):
            folder.mkdir(parents=True, exist_ok=True)
            for path in paths:
                for scheme in ("light", "dark"):
                    open_page(phone, path, scheme)
                    phone.picture(folder / f"{path.stem}_{scheme}.png")
    print(f"{len(paths)} pages, {len(found)} wider than {WIDTH} px")
    return 1 if found or said or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
