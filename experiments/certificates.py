"""Certificates of all rankers on OHSUMED, and bounds by size: ``python3 run.py python -m experiments.certificates``.

Every ranker is fitted on the training part of Fold1, with settings that take seconds. The validation part selects
among its settings, and the test part, 22 queries, is the hold-out of its certificate. TreeRanker has trees of LightGBM.
Reads the folder that RANKWISE_DATA names; writes docs/certificates.json, docs/figures/bounds_by_size.png, and the
tables of docs/guarantees.md. Names of rankers as arguments certify these alone, and keep the others as they are stored.
"""

import json
import math
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bounds_by_size import draw_bounds_by_size
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._figures import save_png
from rankwise._files import writing
from rankwise._progress import track
from rankwise.guarantees._bound import Bound
from rankwise.guarantees.certificate import Certificate
from rankwise.io.folds import read_folds
from rankwise.losses.pair_logistic import PairLogistic
from rankwise.queries.queries import Queries
from rankwise.rankers._base import registered
from rankwise.rankers.boosting.tree_ranker import TreeRanker

RESULTS, FIGURE, PAGE = DOCS / "certificates.json", DOCS / "figures" / "bounds_by_size.png", DOCS / "guarantees.md"
FEATURES, LONGEST = 45, 500
# LETOR scaled every feature to [0, 1] within each query: rows lie in a cube, and within this radius of its center. That
# no query has more documents was declared before looking at the data.
DECLARED: dict[str, Any] = {"row_radius": math.sqrt(FEATURES) / 2, "longest": LONGEST}

# Settings that make a fit quick, or that its paper uses; every other ranker has its defaults.
SETTINGS: dict[str, dict[str, Any]] = {
    "AdaRank": {"rounds": 50},
    "FRank": {"rounds": 30},
    "ListNet": {"solver": "lbfgs"},
    "LossRanker": {"loss": PairLogistic(), "alpha": 0.01},
    "OnlineRanker": {"step": "constant", "eta": 0.01},
    "PermuRank": {"alpha": 0.1, "map": "relevant", "hinge": "max", "rounds": 10, "stop": "last"},
    "RankBoost": {"rounds": 50},
    "RankSVM": {"alpha": 0.01},
    # what the validation part is learned from could not be certified with the training part alone
    "RidgeCommittee": {"refit": "train"},
    "RidgeRanker": {"refit": "train"},
    "SmoothRank": {"alpha": (0.1, 10.0), "protocol": "paper"},
    "TwoStage": {"measure": "AP", "first": "ridge"},
}


def certified(data: Path, names: Sequence[str] = ()) -> dict[str, Certificate]:
    """The certificate of every ranker of the project, or of some, by name."""
    fold = next(iter(read_folds(data / "ohsumed")))
    found = {}
    for name, kind in track(sorted(registered().items()), "certifying"):
        if names and name not in names:
            continue
        if name == "TreeRanker":  # its trees are grown elsewhere
            ranker: Any = trees_of_lightgbm(fold.train)
        else:
            ranker = kind(**SETTINGS.get(name, {}))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # some learn nothing here, and warn
                ranker.fit(fold.train, validation=fold.validation if ranker.takes_validation else None)
        found[name] = ranker.certificate(fold.train, fold.test, **DECLARED)
    return found


def trees_of_lightgbm(train: Queries) -> TreeRanker:
    """LightGBM's LambdaMART with 50 trees of 7 leaves."""
    import lightgbm

    params = {"objective": "lambdarank", "num_leaves": 7, "verbosity": -1, "num_threads": 1, "deterministic": True}
    data = lightgbm.Dataset(np.asarray(train.X), train.y, group=train.sizes)
    return TreeRanker.from_lightgbm(lightgbm.train(params, data, 50))


def table(found: dict[str, Certificate]) -> str:
    """Future queries, one row per ranker: what was measured, and the strongest bound of each kind."""
    titles = ("ranker", "measure", "measured", "headline", "betting alone", "best uniform", "expected")
    return markdown_table(titles, ([f"`{name}`", *on_future(one)] for name, one in found.items()))


def table_of_fits(found: dict[str, Certificate]) -> str:
    """The bounds on the fit itself, for the rankers that have some."""
    titles = ("ranker", "on the training queries", "optimality gap", "online", "iterates")
    rows = {f"`{name}`": about_fit(one) for name, one in found.items()}
    return markdown_table(titles, ([name, *cells] for name, cells in rows.items() if any(cells)))


def on_future(certificate: Certificate) -> list[str]:
    """The title of the measure, 1 - its mean on the hold-out, the headline, and the strongest row of every kind."""
    assert certificate.headline is not None
    about_measure = [row for row in certificate.rows if row.bounds == certificate.headline.bounds]
    return [
        certificate.about.split(", ")[1],
        f"{certificate.headline.terms['mean']:.3f}",
        f"**{certificate.headline.value:.3f}**",
        shown([row for row in about_measure if row.name == "Betting"]),
        shown([row for row in about_measure if row.kind == "generalization"]),
        shown([row for row in certificate.rows if row.bounds.startswith("expected")], ".2g"),
    ]


def about_fit(certificate: Certificate) -> list[str]:
    """The strongest row on the training queries, the solver, the online run, and its iterates."""
    rows = certificate.rows
    return [
        shown([row for row in rows if row.kind == "training" and "abs(" not in row.bounds]),
        shown([row for row in rows if row.kind == "optimality gap"], ".1e"),
        shown([row for row in rows if row.bounds in ("cumulative loss", "rounds with a mistake")]),
        shown([row for row in rows if row.bounds == "mean risk of the iterates"]),
    ]


def shown(rows: list[Bound], form: str = ".3g") -> str:
    """The value of the first row, which is the strongest, and whether it is vacuous or a precondition is not met."""
    if not rows:
        return ""
    best = rows[0]
    faults = [fault for fault, there in (("not met", best.applies is False), ("vacuous", best.vacuous)) if there]
    return f"{best.value:{form}}" + (f" ({', '.join(faults)})" if faults else "")


def main() -> int:
    data = os.environ.get("RANKWISE_DATA")
    if not data:
        print("set RANKWISE_DATA to the folder with the set ohsumed", file=sys.stderr)
        return 2
    found = certified(Path(data), sys.argv[1:])
    if sys.argv[1:]:
        stored = json.loads(RESULTS.read_text(encoding="utf-8"))
        found = dict(sorted(({name: Certificate.from_dict(one) for name, one in stored.items()} | found).items()))
    with writing(RESULTS) as part:
        lines = ",\n".join(f'"{name}": {one.to_json()}' for name, one in found.items())
        part.write_text("{\n" + lines + "\n}\n", encoding="utf-8")
    save_png(draw_bounds_by_size(), FIGURE)
    draw_tables()
    return 0


def draw_tables() -> None:
    """The page's tables from the stored certificates."""
    stored = json.loads(RESULTS.read_text(encoding="utf-8"))
    found = {name: Certificate.from_dict(one) for name, one in stored.items()}
    write_block(PAGE, "certificates", table(found))
    write_block(PAGE, "fits", table_of_fits(found))
    write_block(PAGE, "one certificate", f"```text\n{found['SVMMap']}\n```")


if __name__ == "__main__":
    sys.exit(main())
