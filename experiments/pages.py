"""The parts of the documentation's pages that scripts write, each between two comments that name it."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from rankwise._files import writing
from rankwise.errors import RankwiseError

DOCS = Path(__file__).parents[1] / "docs"


def markdown_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as the pages have them."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (titles, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(titles), *lines[1:]])


def code_pieces(call: str) -> str:
    """``Name(arguments)`` as code in two pieces, so that a narrow column can break it."""
    name, _, arguments = call.removesuffix(")").partition("(")
    return f"`{name}` `{arguments}`" if arguments else f"`{name}`"


def read_block(page: Path, name: str) -> str:
    """What stands between the comments of one part."""
    return _split(page, name)[1].strip("\n")


def write_block(page: Path, name: str, body: str) -> None:
    """Put ``body`` between the comments of one part; the rest of the page stays."""
    before, _, after = _split(page, name)
    with writing(page) as part:
        part.write_text(f"{before}\n{body}\n\n{after}", encoding="utf-8")


def _split(page: Path, name: str) -> tuple[str, str, str]:
    text = page.read_text(encoding="utf-8")
    found = re.fullmatch(rf"(.*<!-- {name}: [^\n]* -->\n)(.*)(<!-- end of {name} -->.*)", text, re.DOTALL)
    if found is None:
        raise RankwiseError(f"{page.name} has no part {name!r}: it stands between '{name}: ...' and 'end of {name}'")
    return found[1], found[2], found[3]
