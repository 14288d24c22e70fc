"""The table of ``rankwise demo``: judged offers of a shop, with the trouble that real tables have.

Query and document ids, a text, a category, a date, prices in two currencies, gaps, heavy tails, a column without any
information, and a column that was recorded after the judgment and so leaks it. What makes an offer relevant is an
interaction: the price counts relative to what the search asks for, stars count if there are many reviews, and slow
delivery counts where the search is urgent.
"""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from rankwise._files import writing
from rankwise._tables import Table

QUERY, LABEL, DOCUMENT, LEAK = "search_id", "relevance", "sku", "orders_after"
# Shares of the grades 0 to 4.
_GRADES = (0.5, 0.25, 0.13, 0.08, 0.04)
_BRANDS = {"acme": 0.6, "nordik": 0.3, "omni": 0.0, "velo": -0.2, "zeta": -0.5}
_THINGS = ("lamp", "kettle", "tent", "saddle", "desk", "drill")


def shop_table(searches: int, most: int, seed: int) -> Table:
    """Judged offers, one row each, in no particular order.

    Parameters
    ----------
    searches : int
        The number of searches.
    most : int
        The largest number of offers of a search; the smallest is a fifth of it.
    seed : int
        The seed.

    Returns
    -------
    Table
        The columns as texts and numbers, as a CSV file holds them.
    """
    rng = np.random.default_rng([seed, 1])
    sizes = rng.integers(max(2, most // 5), most + 1, searches)
    search, n = np.repeat(np.arange(searches), sizes), int(sizes.sum())
    asked, urgent = np.exp(rng.normal(3.5, 0.7, searches))[search], (rng.random(searches) < 0.4)[search]
    thing = rng.choice(_THINGS, searches)[search]
    match, days = rng.normal(12, 4, n), rng.poisson(3, n) + 1
    price = asked * np.exp(rng.normal(0, 0.8, n))
    stars, reviews = rng.uniform(2, 5, n), np.exp(rng.normal(2.5, 1.8, n)).round()
    brand = rng.choice(list(_BRANDS), n)
    age = rng.integers(0, 700, n)
    useful = (
        0.25 * (match - 12)
        - 1.6 * np.abs(np.log(price / asked))
        + 1.1 * (stars - 3.5) * np.minimum(1, np.log1p(reviews) / 4)
        - 0.35 * urgent * days
        + np.array([_BRANDS[name] for name in brand])
        + rng.normal(0, 0.6, n)
    )
    grade = np.searchsorted(np.quantile(useful, np.cumsum(_GRADES)[:-1]), useful)
    in_dollars = rng.random(n) < 0.3
    table: dict[str, Any] = {
        QUERY: [f"s{number}" for number in search],
        "query": np.char.add(
            np.where(urgent, "fast ", ""), np.char.add(thing, np.char.add(" no. ", search.astype(str)))
        ),
        DOCUMENT: [f"P{number:06d}" for number in rng.permutation(n)],
        LABEL: grade,
        "title": np.char.add(np.char.add(thing, " model "), rng.integers(0, 10**6, n).astype(str)),
        "brand": brand,
        "price": np.where(in_dollars, [f"$ {1.1 * one:.2f}" for one in price], [f"{one:.2f} EUR" for one in price]),
        "asked_price": asked.round(2),
        "urgent": np.where(urgent, "yes", "no"),
        "text_match": match.round(3),
        "stars": _with_gaps([f"{one:.1f}" for one in stars], 0.15, rng),
        "reviews": reviews.astype(int),
        "delivery_days": _with_gaps([str(one) for one in days], 0.05, rng),
        "added": [str(day) for day in np.datetime64("2026-01-01") - age.astype("timedelta64[D]")],
        "country": ["DE"] * n,
        LEAK: 3 * grade + rng.integers(0, 2, n),
    }
    order = rng.permutation(n)
    return Table({name: np.asarray(column)[order] for name, column in table.items()})


def _with_gaps(texts: list[str], share: float, rng: np.random.Generator) -> list[str]:
    """The same with a share of empty cells."""
    return ["" if gap else text for text, gap in zip(texts, rng.random(len(texts)) < share, strict=True)]


def write_tables(folder: Path, searches: int, new: int, most: int, seed: int) -> tuple[Path, Path]:
    """Write the judged table, and one of further searches, of which nobody knows the judgments or what leaks them.

    Parameters
    ----------
    folder : Path
        The folder, which is made if it is not there.
    searches, new : int
        The numbers of searches in either table.
    most : int
        The largest number of offers of a search.
    seed : int
        The seed.

    Returns
    -------
    judged, unjudged : Path
        The tables.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table = shop_table(searches + new, most, seed)
    is_new = np.isin(table[QUERY], [f"s{number}" for number in range(searches, searches + new)])
    found = folder / "judged.csv", folder / "new.csv"
    for path, rows, hidden in zip(found, (~is_new, is_new), ((), (LABEL, LEAK)), strict=True):
        columns = [name for name in table.columns if name not in hidden]
        with writing(path) as part, open(part, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*(table[name][rows].tolist() for name in columns), strict=True))
    return found
