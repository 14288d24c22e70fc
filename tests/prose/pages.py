"""What a page of the documentation says in words: its text, and which pieces of it state a measured fact.

A piece counts as a *figure* if it is a number other than a whole one up to 10, or any number with a unit of time, size
or ratio. Words that compare, such as "better", and the word "default" are *assertions*. Code, formulas and the parts of
a page that a script writes are left out: ``test_docs.py`` runs the examples, ``test_prose.py`` renders the parts again.
"""

import doctest
import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

NUMBER = re.compile(r"(?<![\w@^_./,])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?")
UNIT = re.compile(r"\s?(?:%|(?:s|ms|us|MB|GB|seconds?|minutes?|times|million|x)\b)")
COUNTS = r"(?:two|three|four|five|six|seven|eight|nine|ten|twelve|several|hundreds of)"
IN_WORDS = re.compile(
    rf"\b{COUNTS} (?:to {COUNTS} |hundred )?(?:(?:seconds|minutes|microseconds|milliseconds|megabytes)\b|times as\b)"
    r"|\b(?:in|takes|costs|within|than|about) a (?:second|minute)\b|\bone time in \w+\b|\ba third of\b",
    re.IGNORECASE,
)
COMPARISON = re.compile(
    r"\b(?:better|worse|faster|slower|quick(?:er|ly)?|ahead|behind|beats?|hard to beat|tight(?:er|est)|loos(?:er|est)"
    r"|narrow(?:er|est)|wider|kinder|cheap(?:er)?|hardly|as (?:fast|good|well|little) as|the same errors|about level"
    r"|stands? out|far above|difference can be shown)\b",
    re.IGNORECASE,
)


DEFAULT = re.compile(r"\bdefaults?\b", re.IGNORECASE)


def path_of(page: str) -> Path:
    return ROOT / page if page == "README.md" else DOCS / page


@cache
def text_of(page: str) -> str:
    """The page on one line, without code blocks, formulas, written parts and the targets of links."""
    return prose(path_of(page).read_text(encoding="utf-8"))


def prose(text: str) -> str:
    text = re.sub(r"<!-- ([\w ]+): .*?<!-- end of \1 -->", " ", text, flags=re.DOTALL)
    text = re.sub(r"^(```|:::)\{figure\} \S+$(.*?)^\1$", r"\2", text, flags=re.DOTALL | re.MULTILINE)  # its texts stay
    text = re.sub(r"^ *```.*?^ *```$", " ", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\$\$.*?\$\$", " ", text, flags=re.DOTALL)
    text = re.sub(r"(?<=\])\([^)\s]+\)", "", text)
    return " ".join(text.split())


def without_code(text: str) -> str:
    return re.sub(r"`[^`]*`", "`", text)


def figures(text: str) -> list[str]:
    """The numbers that somebody measured or counted, as they are written."""
    found = []
    for match in NUMBER.finditer(text):
        counted = "." not in match[0] and "e" not in match[0] and float(match[0].replace(",", "")) <= 10
        unit = UNIT.match(text, match.end())
        if not counted or unit:
            found.append(match[0] + (unit[0] if counted and unit else ""))
    return found + IN_WORDS.findall(text)


def assertions(text: str) -> list[str]:
    """Words that compare, and words about defaults."""
    return COMPARISON.findall(text) + DEFAULT.findall(text)


# ------------------------------------------------------------------------------------------- what was run or stored


@cache
def stored(name: str) -> Any:
    """Numbers that an experiment or the benchmarks left in docs/."""
    return json.loads((DOCS / f"{name}.json").read_text(encoding="utf-8"))


@cache
def written_part(page: str, part: str) -> list[list[str]]:
    """The rows of a table that a script wrote, without header and rule."""
    found = re.search(
        rf"<!-- {part}: .*?-->\n(.*?)<!-- end of {part} -->", path_of(page).read_text(encoding="utf-8"), re.DOTALL
    )
    assert found is not None, f"{page} has no part {part}"
    rows = [line.strip("| ").split(" | ") for line in found[1].splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in row] for row in rows[2:]]


@cache
def examples_of(page: str) -> tuple[doctest.Example, ...]:
    return tuple(doctest.DocTestParser().get_examples(path_of(page).read_text(encoding="utf-8")))


def printed(page: str, source: str) -> str:
    """What the page's one example with ``source`` in it prints; that it does so is a test of ``test_docs.py``."""
    (found,) = (example.want.strip() for example in examples_of(page) if source in example.source)
    return found


@cache
def numbers_in_examples(page: str) -> frozenset[float]:
    """Every number that the page's executed examples contain or print."""
    text = " ".join(f"{example.source} {example.want}" for example in examples_of(page))
    text = re.sub(r"(?<=\d)[_,](?=\d{3}\b)", "", text)
    return frozenset(float(number) for number in re.findall(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?", text))


def in_examples(page: str, figure: str) -> bool:
    """Whether an example shows this number, rounded as it is written."""
    match = NUMBER.match(figure)
    if match is None:
        return False
    number = match[0].replace(",", "")
    digits = len(number.partition(".")[2])
    return any(round(value, digits) == float(number) for value in numbers_in_examples(page))


def unaccounted(page: str, text: str, accounted: Iterable[str]) -> list[str]:
    """Figures and assertions of ``text`` outside the words that are accounted for and that no example shows."""
    left = list(text)
    for words in accounted:
        start = text.find(words)
        while start >= 0:
            left[start : start + len(words)] = " " * len(words)
            start = text.find(words, start + 1)
    rest = without_code("".join(left))
    return [figure for figure in figures(rest) if not in_examples(page, figure)] + assertions(rest)
