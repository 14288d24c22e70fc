"""Online learning to rank, watched at work: ``python3 run.py python -m experiments.online``.

Four parts, all by default, or those that are named: ``simulation`` (the figure of the online perceptron for ranking),
``bounds`` (loss against the length of lists, mistakes against the margin), ``step`` (a printed bound that fails) and
``data`` (one pass over OHSUMED and MQ2008, in the folder that RANKWISE_DATA names). Each writes its numbers into
docs/online_results.json, its figure into docs/figures, and its table into docs/online.md; ``--redraw`` makes figures
and tables from the numbers that are there. The same numbers come out every time. All takes about six minutes.

OHSUMED lists the documents of a query by BM25, and weights that go to equal labels in input order learn that order.
Every pass over real data therefore shuffles the documents inside the queries, too; what the order of the file would do
is measured beside it.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

import rankwise as rw
from experiments.online_figures import FIGURES, TABLES
from experiments.pages import DOCS, write_block
from experiments.printed_bounds import printed_003
from rankwise._files import writing
from rankwise._progress import track
from rankwise.errors import RankwiseError
from rankwise.evaluation.simulation import GRID, PRINTED, paper_options, reading_rounds, simulate
from rankwise.guarantees import Adversary, play, quarter_step, slam_loss
from rankwise.solvers.online.ledger import Ledger

NUMBERS, PAGE = DOCS / "online_results.json", DOCS / "online.md"

Make = Callable[..., Any]  # a fresh ranker, for a measure and, where it has one, a step

# Steps are chosen on streams and shuffles that are not reported.
SHUFFLES, CHOOSING = range(5), range(100, 105)
CURVES = ("mean", "loss", "mistakes")  # what is kept of a ledger


def rounded(values: Iterable[float], digits: int = 6) -> list[float]:
    """Numbers as the file keeps them."""
    return [float(f"{value:.{digits}g}") for value in values]


def checkpoints(rounds: int, points: int = 54) -> list[int]:
    """Rounds at which a curve is looked at, evenly spaced on a logarithmic axis."""
    return sorted({round(number) for number in np.geomspace(1, rounds, points)})


def follow(ranker: Any, queries: rw.Queries, rounds: Sequence[int]) -> list[Ledger]:
    """The account of one pass after each of these rounds."""
    before, accounts = 0, []
    for last in rounds:
        accounts.append(ranker.partial_fit(queries[before:last]).ledger_)
        before = last
    return accounts


# ------------------------------------------------------------------------------------------------------ simulation

MARGIN, OTHER_MARGINS, ROUNDS = 0.02, (0.1, 0.05, 0.01, 0.005), 10_000
STREAM_SEEDS = (0, 10, 20, 30, 40)  # the step of ListNet is chosen on the stream of the next seed


def simulation() -> dict[str, Any]:
    """The curves at one margin, the cumulative losses at others, and the stream with one Gaussian per grade."""
    found = simulated(MARGIN)
    losses = {MARGIN: found} | {margin: simulated(margin) for margin in OTHER_MARGINS}
    by_margin = {
        f"{margin:g}": {
            "eta": losses[margin]["eta"],
            "eta_printed": losses[margin]["eta_printed"],
            "loss": {name: [run[-1] for run in curve["loss"]] for name, curve in losses[margin]["curves"].items()},
        }
        for margin in sorted(losses, reverse=True)
    }
    own = {"margin": MARGIN, "seeds": list(STREAM_SEEDS)}
    return {**own, **found, "by_margin": by_margin, "gaussians": with_gaussians(MARGIN)}


def simulated(margin: float) -> dict[str, Any]:
    """20 documents, 20 features, 5 grades, as the paper has it; margin, radius and number of rounds are ours."""
    at = [t for place, t in enumerate(reading_rounds(ROUNDS)) if place % 3 == 0 or t in (100, 1_000, ROUNDS)]
    theory: dict[str, Any] = {"max_norm": 1 / margin, "row_radius": 1.0, "horizon": ROUNDS}
    others = {"ListNet, step of theory": rw.ListNet(eta="theory", **theory), "ListNet, step 1": rw.ListNet()}
    curves: dict[str, dict[str, list[Any]]] = {}
    facts: dict[str, list[float]] = {"eta": [], "eta_printed": [], "bound": []}
    for seed in track(STREAM_SEEDS, f"margin {margin:g}"):
        stream = rw.synthetic.separable_stream(ROUNDS, margin=margin, random_state=seed)
        found = simulate(stream)
        kept = [found["rounds"].index(rounds) for rounds in at]
        facts["eta"].append(found["tuning"]["eta"])
        facts["eta_printed"].append(found["tuning_printed"]["eta"])
        facts["bound"].append(_number(found["rankers"]["SLAMPerceptron"]["bounds"][0]["value"]))
        runs = {
            name: [[found["rankers"][name][what][place] for place in kept] for what in CURVES]
            for name in ("SLAMPerceptron", PRINTED, "MaxPairPerceptron", "ListNet")
        }
        queries = stream.queries()
        for name, ranker in others.items():
            accounts = follow(clone(ranker), queries, at)
            runs[name] = [[getattr(account, what) for account in accounts] for what in CURVES]
        for name, run in runs.items():
            curve = curves.setdefault(name, {what: [] for what in CURVES})
            for what, values in zip(CURVES, run, strict=True):
                curve[what].append(rounded(values))
    return {**facts, "rounds": at, "curves": curves}


def gaussian_queries(rounds: int, margin: float, seed: int, m: int = 20, d: int = 20, grades: int = 5) -> rw.Queries:
    """Queries whose documents come from one Gaussian per grade, as the text of the paper describes them.

    A document of grade g is c_g + p + a u: c_g, a center of its grade of length 1 or so, and p are normal and
    orthogonal to the hidden unit vector u, and a lies in bands that are ``margin`` apart. Without the centers this is
    `rw.synthetic.separable_stream`, in which only u tells grades apart.
    """
    random = np.random.default_rng(seed)
    u = random.standard_normal(d)
    u /= np.linalg.norm(u)
    y = random.integers(0, grades, size=rounds * m)
    center = random.standard_normal((grades, d)) / np.sqrt(d)
    x = center[y] + random.standard_normal((rounds * m, d)) / (2 * np.sqrt(d))
    along = 2 * margin * (y - (grades - 1) / 2) + random.uniform(0, margin, size=rounds * m)
    x += np.outer(along - x @ u, u)
    return rw.Queries.from_arrays(x / np.linalg.norm(x, axis=1).max(), y.astype(float), group=[m] * rounds)


def with_gaussians(margin: float, rounds: int = 1_000) -> dict[str, Any]:
    """Running NDCG@10 of the three rankers of the paper, with one Gaussian per grade and on our own stream."""
    shown = [100, rounds]
    rankers: dict[str, Make] = {
        "SLAMPerceptron": rw.SLAMPerceptron,
        PRINTED: lambda measure, **step: rw.SLAMPerceptron(measure, **paper_options(measure), **step),
        "MaxPairPerceptron": rw.MaxPairPerceptron,
        "ListNet": rw.ListNet,
    }
    means: dict[str, list[list[float]]] = {name: [] for name in rankers}
    for seed in track(STREAM_SEEDS, "one Gaussian per grade"):
        queries, tuning = (gaussian_queries(rounds, margin, one) for one in (seed, seed + 1))
        for name, make in rankers.items():
            step = {}
            if name in (PRINTED, "ListNet"):
                tried = {eta: make("nDCG@10", eta=eta).fit(tuning).ledger_.mean for eta in GRID}
                step["eta"] = max(GRID, key=tried.__getitem__)
            accounts = follow(make("nDCG@10", **step), queries, shown)
            means[name].append(rounded(account.mean for account in accounts))
    return {"rounds": shown, "mean": means}


# ------------------------------------------------------------------------------------------------------ bounds

LENGTHS = (5, 10, 20, 50, 100, 200, 500)
GAMMAS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01)
SMALLEST_GAME = 0.05  # the adversary's rounds have 4/gamma^2 features
WORLDS = range(3)


def bounds() -> dict[str, Any]:
    return {"length": against_length(), "margin": against_margin()}


def against_length(gamma: float = 0.05, rounds: int = 2_000) -> dict[str, Any]:
    """NDCG of the whole list: the scale-free perceptron and Theorem S, the paper's perceptron and its equation (19)."""
    names = ("loss", "bound", "paper_loss", "paper_bound")
    found: dict[str, list[list[float]]] = {name: [] for name in names}
    for m in track(LENGTHS, "lengths"):
        rows = []
        for seed in WORLDS:
            ours = rw.SLAMPerceptron("nDCG")
            theirs = rw.SLAMPerceptron("nDCG", margin=1.0, weights="ndcg_003")
            for block in rw.synthetic.separable_stream(rounds, documents=m, margin=gamma, random_state=seed).blocks():
                ours.partial_fit(block)
                theirs.partial_fit(block)
            a, b = ours.ledger_, theirs.ledger_
            printed = printed_003(F=0.0, norm_u=1 / gamma, radius=b.radius, v_max=b.weights.v_max, m=m)
            rows.append((a.loss, a.bounds(gamma=gamma)[0].value, b.loss, printed.value))
        for name, values in zip(names, zip(*rows, strict=True), strict=True):
            found[name].append(rounded(values))
    return {"gamma": gamma, "rounds": rounds, "m": list(LENGTHS)} | found


def against_margin(rounds: int = 20_000) -> dict[str, Any]:
    """Two grades and AP: mistakes in separable worlds, and those that the adversary forces."""
    rankers: dict[str, Make] = {
        "SLAMPerceptron": rw.SLAMPerceptron,
        "MaxPairPerceptron": rw.MaxPairPerceptron,
        "ListNet": rw.ListNet,
    }
    mistakes: dict[str, list[list[int]]] = {name: [] for name in rankers if name != "ListNet"}
    limits: dict[str, list[list[float]]] = {name: [] for name in mistakes}
    forced: dict[str, list[int]] = {name: [] for name in rankers}
    for gamma in track(GAMMAS, "margins"):
        accounts: dict[str, list[Ledger]] = {name: [] for name in mistakes}
        for seed in WORLDS:
            queries = rw.synthetic.separable_stream(rounds, grades=2, margin=gamma, random_state=seed).queries()
            for name in mistakes:
                accounts[name].append(rankers[name]("AP").fit(queries).ledger_)
        for name in mistakes:
            mistakes[name].append([account.mistakes for account in accounts[name]])
            limits[name].append(rounded(account.bounds(gamma=gamma)[-1].value for account in accounts[name]))
        if gamma >= SMALLEST_GAME:
            for name, make in rankers.items():
                forced[name].append(play(make("AP"), Adversary(gamma=gamma)).mistakes)
    return {"rounds": rounds, "gamma": list(GAMMAS), "mistakes": mistakes, "bounds": limits, "forced": forced}


# ------------------------------------------------------------------------------------------------------ step


def step(most: int = 400_000) -> dict[str, Any]:
    """Three documents with short rows, shown again and again: margin 1 with a step of 1, and no margin."""
    X, y, u = 0.01 * np.array([(0.0, 0.0), (1.0, 0.0), (-0.5, 0.3)]), [0.0, 1.0, 1.0], 100 * np.array([1.0, 5.0])
    queries = rw.Queries.from_arrays(np.tile(X, (most, 1)), np.tile(y, most), group=[3] * most)
    rounds = checkpoints(most, 100)
    one = {"F": 0.0, "norm_u": float(np.linalg.norm(u)), "radius": 0.01}
    found: dict[str, Any] = {"rounds": rounds}
    for name, margin in (("margin 1", 1.0), ("margin 0", 0.0)):
        accounts = follow(rw.SLAMPerceptron("AP", weights="ap_000", margin=margin), queries, rounds)
        facts = accounts[-1].weights
        found[name] = {
            "loss": rounded(account.loss for account in accounts),
            "mistakes": accounts[-1].mistakes,
            "slam_loss": slam_loss(**one, V=facts.V, margin=margin, eta=1.0).value,
            "printed": quarter_step(**one, kappa=3 * facts.v_max).value,
        }
    return found


# ------------------------------------------------------------------------------------------------------ data

MEASURES = ("nDCG@10", "AP")
DATA_ETAS = [2.0**power for power in range(4, -11, -1)]  # of equally good ones the largest is taken
PAPERS_WEIGHTS = {"nDCG@10": "ndcg_003", "AP": "ap_003"}

FIXED: dict[str, Make] = {
    "SLAMPerceptron": rw.SLAMPerceptron,
    "SLAMPerceptron, papers' weights": lambda measure, **options: rw.SLAMPerceptron(
        measure, weights=PAPERS_WEIGHTS[measure], **options
    ),
    "MaxPairPerceptron": rw.MaxPairPerceptron,
}
WITH_A_STEP: dict[str, Make] = {
    "SLAMPerceptron, papers' weights, margin 1": lambda measure, **options: rw.SLAMPerceptron(
        measure, margin=1.0, weights=PAPERS_WEIGHTS[measure], **options
    ),
    "ListNet": rw.ListNet,
}


def data() -> dict[str, Any]:
    folder = os.environ.get("RANKWISE_DATA")
    if not folder:
        raise RankwiseError("set RANKWISE_DATA to the folder with the ohsumed and mq2008 data")
    return {name: one_set(Path(folder) / name) for name in ("ohsumed", "mq2008")}


def one_set(folder: Path) -> dict[str, Any]:
    """Running measures of one pass over all queries, and the measures of the final weights on the folds' test parts.

    "file order" has those of the rules that depend on the order of equal labels, with documents as the file has them.
    """
    folds = list(rw.io.read_folds(folder))
    queries = rw.Queries.concat([fold.test for fold in folds])
    rows: dict[str, dict[str, Any]] = {}
    for name, make in track([*FIXED.items(), *WITH_A_STEP.items()], folder.name):
        row: dict[str, Any] = {"eta": {}} if name in WITH_A_STEP else {}
        for measure in MEASURES:
            options = {}
            if name in WITH_A_STEP:
                row["eta"][measure] = chosen_step(make, measure, queries)
                options["eta"] = row["eta"][measure]
            row[measure] = rounded(running(make(measure, **options), queries, seed).mean for seed in SHUFFLES)
        for averaging in ("none", "uniform"):
            row[f"held out, {averaging}"] = rounded(held_out(make, folds, averaging, name in WITH_A_STEP))
        if "papers' weights" in name:
            kept = held_out(make, folds, "uniform", name in WITH_A_STEP, shuffled=False)
            step = {"eta": row["eta"]["nDCG@10"]} if name in WITH_A_STEP else {}
            run = (running(make("nDCG@10", **step), queries, seed, shuffled=False).mean for seed in SHUFFLES)
            row["file order"] = {"nDCG@10": rounded(run), "held out, uniform": rounded(kept)}
        rows[name] = row
    at = sorted({round(number) for number in np.linspace(10, len(queries), 100)})
    curves = {}
    for name, make in (FIXED | WITH_A_STEP).items():
        options = {"eta": rows[name]["eta"]["nDCG@10"]} if name in WITH_A_STEP else {}
        runs = [follow(make("nDCG@10", **options), shuffle(queries, seed), at) for seed in SHUFFLES]
        curves[name] = [[_number(account.mean) for account in run] for run in runs]
    return {"queries": len(queries), "plain": plain(queries), "rows": rows, "rounds": at, "curves": curves}


def shuffle(queries: rw.Queries, seed: int, *, documents: bool = True) -> rw.Queries:
    """The queries in a random order, and the documents of each query, too."""
    random = np.random.default_rng(seed)
    queries = queries[random.permutation(len(queries))]
    if not documents:
        return queries
    # a random key inside each query: np.lexsort sorts by its last key first
    rows = queries.rows[np.lexsort((random.random(queries.n_documents), np.repeat(*_numbered(queries))))]
    return rw.Queries.from_arrays(queries.X[rows], queries.labels()[rows], group=queries.sizes)


def _numbered(queries: rw.Queries) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.arange(len(queries)), queries.sizes


def running(ranker: Any, queries: rw.Queries, seed: int, *, shuffled: bool = True) -> Ledger:
    """The account of one pass in the order of this shuffle; ``shuffled`` documents or those of the file."""
    account: Ledger = ranker.fit(shuffle(queries, seed, documents=shuffled)).ledger_
    return account


def chosen_step(make: Make, measure: str, queries: rw.Queries) -> float:
    """The step of the best running measure over shuffles that are not reported."""

    def mean(eta: float) -> float:
        return float(np.mean([running(make(measure, eta=eta), queries, seed).mean for seed in CHOOSING]))

    return max(DATA_ETAS, key=mean)


def held_out(
    make: Make, folds: Sequence[rw.io.Fold], averaging: str, has_a_step: bool, *, shuffled: bool = True
) -> list[float]:
    """NDCG@10 of the weights after one pass over the training part, on the test part: for each shuffle, over folds.

    A step is chosen for each fold on its validation part, by one shuffle that is not reported.
    """

    def learned(fold: rw.io.Fold, seed: int, **options: Any) -> Any:
        train = shuffle(fold.train, seed, documents=shuffled)
        return make("nDCG@10", averaging=averaging, **options).fit(train)

    options: list[dict[str, float]] = [{} for _ in folds]
    if has_a_step:
        for fold, found in zip(folds, options, strict=True):
            scored = {eta: learned(fold, CHOOSING[0], eta=eta).score(fold.validation) for eta in DATA_ETAS}
            found["eta"] = max(DATA_ETAS, key=scored.__getitem__)
    each = list(zip(folds, options, strict=True))
    return [
        float(np.mean([learned(fold, seed, **found).score(fold.test) for fold, found in each])) for seed in SHUFFLES
    ]


def plain(queries: rw.Queries) -> dict[str, dict[str, float]]:
    """What no learning gives: lists in no order, and the feature that is best in hindsight."""
    nothing = rw.evaluate(queries, np.zeros(len(queries.labels())), MEASURES).mean
    features = [rw.evaluate(queries, queries.X[:, column], MEASURES).mean for column in range(queries.n_features)]
    return {
        "no order": {measure: _number(nothing[measure]) for measure in MEASURES},
        "best feature": {measure: _number(max(one[measure] for one in features)) for measure in MEASURES},
    }


def _number(value: float) -> float:
    return rounded([value])[0]


# ------------------------------------------------------------------------------------------------------ running

PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "simulation": simulation,
    "bounds": bounds,
    "step": step,
    "data": data,
}


def save(numbers: dict[str, Any]) -> None:
    """Write the numbers with every list of them on one line."""
    text = json.dumps(numbers, indent=1)
    text = re.sub(r"\[\s([^][{}]*?)\s\]", lambda found: "[" + " ".join(found[1].split()) + "]", text)
    with writing(NUMBERS) as part:
        part.write_text(text + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    redraw = arguments == ["--redraw"]
    if not redraw and (unknown := set(arguments) - set(PARTS)):
        known = ", ".join(PARTS)
        print(f"the parts are {known}, and --redraw stands alone: found {' '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    numbers: dict[str, Any] = json.loads(NUMBERS.read_text(encoding="utf-8")) if NUMBERS.exists() else {}
    for name in () if redraw else arguments or list(PARTS):
        numbers[name] = PARTS[name]()
        save({part: numbers[part] for part in PARTS if part in numbers})
    for name in numbers if redraw else arguments or list(PARTS):
        FIGURES[name](numbers[name])
        for block, table in TABLES[name](numbers[name]).items() if name in TABLES else ():
            write_block(PAGE, block, table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
