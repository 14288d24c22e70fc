"""Where the figures and comparisons of the pages come from.

``@claims("page.md")`` marks a function that asserts what a sentence claims and yields the words of the page, with every
measured number filled in from its source. ``stated("page.md", why, ...)`` names words that were not measured: settings,
definitions, mathematics, other people's numbers.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator

Claim = Callable[[], Iterator[str]]

CLAIMS: dict[str, list[Claim]] = defaultdict(list)
STATED: dict[str, list[str]] = defaultdict(list)


def claims(page: str) -> Callable[[Claim], Claim]:
    def keep(claim: Claim) -> Claim:
        CLAIMS[page].append(claim)
        return claim

    return keep


def stated(page: str, why: str, *words: str) -> None:
    assert why
    STATED[page].extend(words)
