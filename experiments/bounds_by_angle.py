"""How tight two bounds of 1 - AP are as a ranker turns: ``python3 run.py python -m experiments.bounds_by_angle``.

The simulation of the paper on direct optimization (Figures 3 and 4): 7 relevant documents around (1, 1) and 14
irrelevant ones around (-1, -1), features of variance 0.2 and 0.2, or 0.2 and 1.3, and w = (cos t, sin t). Five lists of
each kind at 72 angles; the figure shows the first of each. Writes docs/bounds_by_angle.json, its table in
docs/direct.md and docs/figures/bounds_by_angle.png.
"""

import json
import sys
from typing import Any

import numpy as np

from experiments.bound_angles import AngleBounds, bounds_by_angle, draw_bounds, two_clouds
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._figures import save_png
from rankwise._files import writing

NUMBERS, FIGURE = DOCS / "bounds_by_angle.json", DOCS / "figures" / "bounds_by_angle.png"
VARIANCES = ((0.2, 0.2), (0.2, 1.3))
SEEDS = range(5)
ANGLES = 72
EIGHTH = ANGLES // 8  # the place of 45 degrees, the direction from one center to the other
SHOWN = np.radians(np.arange(-135.0, 226.0))  # all angles, that direction in the middle


def title_of(variance: tuple[float, float]) -> str:
    return f"variances {variance[0]:g} and {variance[1]:g}"


def row(found: AngleBounds) -> dict[str, Any]:
    """The bounds of one query, as plain numbers."""
    at_45 = {
        "type one": found.type_one,
        **{f"type two, {name}": values for name, values in found.type_two.items()},
        "pairs, best sorted": found.best_sorted,
    }
    return {
        "bounds": list(found.summary()),
        "at 45 degrees": {name: float(values[EIGHTH]) for name, values in at_45.items()},
    }


def collect() -> dict[str, Any]:
    """The five queries of each pair of variances."""
    return {
        "angles": ANGLES,
        "seeds": list(SEEDS),
        "lists": {
            title_of(variance): [
                row(bounds_by_angle(*two_clouds(variance, random_state=seed), angles=ANGLES)) for seed in SEEDS
            ]
            for variance in VARIANCES
        },
    }


def table(numbers: dict[str, Any]) -> str:
    """One row for each kind of query and each bound, smallest to largest over its queries."""
    rows = []
    for title, lists in numbers["lists"].items():
        for place, bound in enumerate(each["bound"] for each in lists[0]["bounds"]):
            found = [each["bounds"][place] for each in lists]
            degrees = "" if bound == "type one" else span([each["degrees"] for each in found], "{:.0f}")
            tighter = "" if bound == "type one" else span([each["tighter"] for each in found], "{:d}")
            condition = "" if bound == "type one" else span([each["condition"] for each in found], "{:d}")
            at_45 = span([each["at 45 degrees"][bound] for each in lists], "{:.2f}")
            smallest = span([each["smallest"] for each in found], "{:.2f}")
            rows.append([title, bound, at_45, smallest, degrees, tighter, condition])
    titles = ["query", "bound", "at 45 degrees", "smallest", "at degrees", "tighter than type one", "condition (9)"]
    return markdown_table(titles, rows)


def span(values: list[Any], form: str) -> str:
    """Smallest to largest."""
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"


def main() -> int:
    numbers = collect()
    with writing(NUMBERS) as part:
        part.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    shown = {title_of(variance): bounds_by_angle(*two_clouds(variance), angles=SHOWN) for variance in VARIANCES}
    save_png(draw_bounds(shown), FIGURE)
    write_block(DOCS / "direct.md", "angles", table(numbers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
