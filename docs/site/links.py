"""The links of the built documentation lead somewhere: ``python -m docs.site.links build/docs``.

Every ``href`` and ``src`` of every page that does not leave the site has to name a file that is there, and a fragment
has to name an element of that file. ``python3 run.py docs`` runs it after the build.
"""

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ATTRIBUTES = ("href", "src", "poster", "data")


@dataclass
class Links:
    """What a page links to, and the names that others can link to."""

    targets: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found = Links()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.found.names.add(value)
            elif name in ATTRIBUTES:
                self.found.targets.append(value.strip())
            elif name == "srcset":
                self.found.targets += [part.split()[0] for part in value.split(",") if part.strip()]

    handle_startendtag = handle_starttag


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


def _lacking(target: str, page: Path, root: Path, pages: dict[Path, Links]) -> str | None:
    """What is missing for the link to work; None if nothing is, or if it leaves the site."""
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//", target):
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
    """Print what is dead; 1 if anything is, or if there is no page."""
    if not any(folder.rglob("*.html")):
        print(f"{folder} holds no page of HTML", file=sys.stderr)
        return 1
    dead = dead_links(folder)
    for sentence in dead:
        print(sentence, file=sys.stderr)
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
