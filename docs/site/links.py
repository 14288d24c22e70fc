"""The links of the built documentation lead somewhere: ``python -m docs.site.links build/docs``.

Every ``href`` and ``src`` of every page that does not leave the site has to name a file that is there, and a fragment
has to name an element of that file. The site is read without a network: scripts, styles, fonts, pictures and frames
have to be files of the site, and only what a reader clicks may leave it. ``python3 run.py docs`` runs it after the
build.
"""

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ATTRIBUTES = ("href", "src", "poster", "data")
CLICKED = ("a", "area")  # elements whose addresses are visited on demand; those of all others are fetched with the page
NEVER_FETCHED = {"alternate", "author", "canonical", "help", "license", "next", "prev", "search"}  # kinds of <link>
ADDRESS = re.compile(r"(?!data:)[a-zA-Z][a-zA-Z0-9+.-]*:|//")
# The two ways of a style to ask for a file.
IN_STYLES = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""", re.IGNORECASE)


@dataclass
class Links:
    """What a page links to, what a browser fetches to show it, and the names that others can link to."""

    targets: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found = Links()
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        kinds = set((dict(attrs).get("rel") or "").lower().split())
        targets = []
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.found.names.add(value)
            elif name in ATTRIBUTES:
                targets.append(value.strip())
            elif name == "srcset":
                targets += [part.split()[0] for part in value.split(",") if part.strip()]
            elif name == "style":
                self.found.fetched += files_of_style(value)
        self.found.targets += targets
        if tag not in CLICKED and not (tag == "link" and kinds and kinds <= NEVER_FETCHED):
            self.found.fetched += targets

    handle_startendtag = handle_starttag

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.found.fetched += files_of_style(data)

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False


def files_of_style(text: str) -> list[str]:
    """What a style asks for."""
    return [(address or imported).strip() for address, imported in IN_STYLES.findall(text)]


def links_of(text: str) -> Links:
    """The links and names of a page of HTML."""
    reader = _Reader()
    reader.feed(text)
    return reader.found


def dead_links(folder: Path) -> list[str]:
    """A sentence for each link that leads nowhere.

    Parameters
    ----------
    folder : Path
        The root of the site.

    Returns
    -------
    list of str
        The page, the link, and what is missing; empty if every link leads somewhere.
    """
    root = folder.resolve()
    pages = {path.resolve(): links_of(path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.html"))}
    dead = []
    for page, found in pages.items():
        for target in dict.fromkeys(found.targets):
            lacking = _lacking(target, page, root, pages)
            if lacking:
                dead.append(f"{page.relative_to(root)}: {target!r} leads nowhere: {lacking}")
    return dead


def foreign_files(folder: Path) -> list[str]:
    """A sentence for each file that the site would fetch from elsewhere.

    Parameters
    ----------
    folder : Path
        The root of the site.

    Returns
    -------
    list of str
        The page or the style sheet, and the address; empty if the site can be read without a network.
    """
    asked = {path: links_of(path.read_text(encoding="utf-8")).fetched for path in sorted(folder.rglob("*.html"))}
    asked |= {path: files_of_style(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.css"))}
    return [
        f"{path.relative_to(folder)}: {target!r} is not a file of the site, which is read without a network"
        for path, targets in asked.items()
        for target in dict.fromkeys(targets)
        if ADDRESS.match(target)
    ]


def _lacking(target: str, page: Path, root: Path, pages: dict[Path, Links]) -> str | None:
    """What is missing for the link to work; None if nothing is, or if it leaves the site."""
    if ADDRESS.match(target) or target.startswith("data:"):
        return None
    parts = urlsplit(target)
    if parts.path.startswith("/"):
        return "the site may stand in any folder, and this begins at the root of its host"
    path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if path.is_dir():
        path /= "index.html"
    if not path.is_relative_to(root):
        return "it is outside of the site"
    if not path.is_file():
        return f"there is no {path.relative_to(root)}"
    fragment = unquote(parts.fragment)
    if fragment and path in pages and fragment not in pages[path].names:
        return f"{path.relative_to(root)} has no element {fragment!r}"
    return None


def main(folder: Path) -> int:
    """Print what is dead or fetched from elsewhere; 1 if anything is, or if there is no page."""
    if not any(folder.rglob("*.html")):
        print(f"{folder} holds no page of HTML", file=sys.stderr)
        return 1
    faults = dead_links(folder) + foreign_files(folder)
    for sentence in faults:
        print(sentence, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
