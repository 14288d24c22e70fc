"""Maps and kernels, when they pay and what they cost: ``python3 run.py python -m experiments.kernels``.

Four parts, all by default, or those that are named: ``shapes`` (two problems that no linear ranker solves), ``budget``
(mistakes against the budget and the number of random features), ``memory`` (a million rounds) and ``data`` (ridge on
maps of OHSUMED and MQ2008, in the folder that RANKWISE_DATA names). Each writes its numbers into docs/kernels.json, and
its figure or table into docs/figures and docs/neural.md. All takes about ten minutes.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import KBinsDiscretizer, SplineTransformer

import rankwise as rw
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._figures import COLORS, FAINT, house_style, new_figure, save_png
from rankwise._files import writing
from rankwise._progress import track
from rankwise.errors import RankwiseError

NUMBERS, PAGE, FIGURES = DOCS / "kernels.json", DOCS / "neural.md", DOCS / "figures"

# ------------------------------------------------------------------------------------------------------ shapes

TRAIN, TEST, DOCUMENTS, GAMMA = 60, 300, 20, 4.0
SHAPES: dict[str, Callable[[Any], Any]] = {
    "rings": lambda X: np.hypot(X[:, 0], X[:, 1]),
    "products": lambda X: X[:, 0] * X[:, 1],
}


def shaped(name: str, count: int, seed: int) -> rw.Queries:
    """Queries of two features in [-1, 1]; grades are the thirds of a function of both, and two features are noise."""
    random = np.random.default_rng([seed, len(name)])
    X = random.uniform(-1, 1, (count * DOCUMENTS, 4))
    value = SHAPES[name](X)
    labels = (value[:, None] > np.quantile(value, [1 / 3, 2 / 3])).sum(axis=1)
    return rw.Queries.from_arrays(X, labels, group=[DOCUMENTS] * count)


def rankers() -> dict[str, Any]:
    """Linear rankers, the same on maps, perceptrons with a kernel, a network, and boosted trees."""
    fourier, splines = rw.features.FourierFeatures(GAMMA / 4, 256), SplineTransformer(n_knots=8)
    landmarks = Nystroem(gamma=GAMMA / 4, n_components=100, random_state=0)
    return {
        "RidgeRanker": rw.RidgeRanker(),
        "SmoothRank": rw.SmoothRank(),
        "RidgeRanker on splines": rw.MappedRanker(splines, rw.RidgeRanker()),
        "RidgeRanker on 256 Fourier features": rw.MappedRanker(fourier, rw.RidgeRanker()),
        "RidgeRanker on 100 landmarks": rw.MappedRanker(landmarks, rw.RidgeRanker()),
        "SmoothRank on 100 landmarks": rw.MappedRanker(landmarks, rw.SmoothRank()),
        "KernelPerceptron, map=512, 10 epochs": rw.KernelPerceptron(gamma=GAMMA / 4, map=512, epochs=10),
        "KernelPerceptron, budget=500, 10 epochs": rw.KernelPerceptron(gamma=GAMMA / 4, budget=500, epochs=10),
        "NeuralRanker": rw.NeuralRanker(),
        "BoostedRanker, 200 trees": rw.BoostedRanker(trees=200, seeds=1, folds=2),
    }


def shapes() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in SHAPES:
        train, test = shaped(name, TRAIN, 0), shaped(name, TEST, 1)
        constant = rw.evaluate(test, np.zeros(test.n_documents), "nDCG@10").mean["nDCG@10"]
        found[name] = {"all documents tied": constant}
        for title, ranker in track(rankers().items(), name):
            found[name][title] = clone(ranker).fit(train).score(test)
    return found


def draw_shapes(found: dict[str, Any]) -> None:
    with house_style():
        figure = new_figure(8.0, 3.4)
        axes = figure.subplots(1, len(found), sharey=True)
        for one, (name, values) in zip(axes, found.items(), strict=True):
            base = values["all documents tied"]
            titles = [title for title in values if title != "all documents tied"]
            colors = [
                COLORS[3 if "Neural" in title else 2 if "Boost" in title else 1 if "Kernel" in title else 0]
                for title in titles
            ]
            for place, (title, color) in enumerate(zip(titles, colors, strict=True)):
                linear = title in ("RidgeRanker", "SmoothRank")
                one.barh(place, values[title] - base, left=base, color=FAINT if linear else color)
            one.set_yticks(range(len(titles)), titles)
            one.axvline(base, color=FAINT, linestyle=":")
            one.set(title=name, xlabel="NDCG@10 (dotted: all tied)", xlim=(0.3, 1.01))
        axes[0].invert_yaxis()
        save_png(figure, FIGURES / "kernels_shapes.png")


def shapes_table(found: dict[str, Any]) -> str:
    titles = list(next(iter(found.values())))
    rows = [[title, *(f"{found[name][title]:.4f}" for name in found)] for title in titles]
    return markdown_table(["ranker", *found], rows)


# ------------------------------------------------------------------------------------------------------ budget

ROUNDS, ANGLE = 10_000, 1e-3
BUDGETS, MAPS = (10, 20, 50, 100, 200, 500, 1000), (16, 32, 64, 128, 256, 512, 1024)


def budget() -> dict[str, Any]:
    """Mistakes in all rounds, and the mean measure, for every size."""
    found: dict[str, Any] = {"rounds": ROUNDS, "margin": None, "streams": {}}
    for title, angle in {"separable": 0.0, "drifting": ANGLE}.items():
        stream = rw.synthetic.kernel_stream(ROUNDS, angle=angle, random_state=0)
        queries, found["margin"] = stream.queries(), stream.margin
        rows = []
        for removal in ("oldest", "smallest"):
            for size in track(BUDGETS, f"{title}, {removal}"):
                model = rw.KernelPerceptron("nDCG", gamma=stream.gamma, budget=size, removal=removal)
                rows.append(_row(f"budget, {removal}", size, model.fit(queries)))
        for size in track(MAPS, f"{title}, map"):
            rows.append(_row("map", size, rw.KernelPerceptron("nDCG", gamma=stream.gamma, map=size).fit(queries)))
        linear = rw.SLAMPerceptron("nDCG").fit(queries).ledger_
        found["streams"][title] = {"rows": rows, "linear": [linear.mistakes, linear.mean]}
    return found


def _row(way: str, size: int, model: Any) -> dict[str, Any]:
    ledger = model.ledger_
    bound = None if ledger.removed else [ledger.loss, ledger.bounds(gamma=0.05)[0].value]
    return {
        "way": way,
        "size": size,
        "mistakes": ledger.mistakes,
        "mean": ledger.mean,
        "removed": ledger.removed,
        "loss and bound": bound if way != "map" else None,
    }


def draw_budget(found: dict[str, Any]) -> None:
    with house_style():
        figure = new_figure(8.0, 3.2)
        axes = figure.subplots(1, 2, sharey=True)
        for one, (title, stream) in zip(axes, found["streams"].items(), strict=True):
            for way, color in zip(("budget, oldest", "budget, smallest", "map"), COLORS, strict=False):
                rows = [row for row in stream["rows"] if row["way"] == way]
                style = "--" if way == "map" else "-"
                sizes, mistakes = [row["size"] for row in rows], [row["mistakes"] for row in rows]
                one.plot(sizes, mistakes, color=color, linestyle=style, marker="o", label=way)
            one.axhline(stream["linear"][0], color=FAINT, linestyle=":", label="SLAMPerceptron, linear")
            one.set(title=f"{title} stream", xscale="log", yscale="log", xlabel="stored documents, or random features")
        axes[0].set(ylabel=f"mistakes in {found['rounds']:,} rounds")
        axes[1].legend(loc="best")
        save_png(figure, FIGURES / "kernels_budget.png")


# ------------------------------------------------------------------------------------------------------ memory

MILLION = 1_000_000
READ_AT = (10_000, 100_000, MILLION)


def memory() -> dict[str, Any]:
    """Resident memory after some rounds of a drifting stream of three documents per query."""
    found = {}
    for title, settings in {"budget=100": {"budget": 100}, "map=64": {"map": 64}}.items():
        stream = rw.synthetic.kernel_stream(MILLION, documents=3, angle=ANGLE)
        model = rw.KernelPerceptron("nDCG@1", gamma=stream.gamma, **settings)
        resident = []
        for block in track(stream.blocks(), title):
            model.partial_fit(block)
            rounds = model.ledger_.rounds
            if len(resident) < len(READ_AT) and rounds >= READ_AT[len(resident)]:
                resident.append([rounds, _resident_megabytes()])
        state = sum(array.nbytes for array in vars(model.state_).values())
        found[title] = {"resident": resident, "state": state, "mean": model.ledger_.mean}
    return found


def _resident_megabytes() -> float:
    with open("/proc/self/status", encoding="ascii") as lines:
        figures = dict(line.split(":", 1) for line in lines)
    return int(figures["VmRSS"].split()[0]) / 1024


def memory_table(found: dict[str, Any]) -> str:
    rows = [
        [f"`{title}`", f"{one['state']:,} bytes", *(f"{size:.0f} MB" for _, size in one["resident"])]
        for title, one in found.items()
    ]
    return markdown_table(["", "state", *(f"process after {rounds:,} rounds" for rounds in READ_AT)], rows)


# ------------------------------------------------------------------------------------------------------ data


def maps() -> dict[str, Any]:
    """What is put before the ridge regression."""
    return {
        "features as they are": None,
        "splines": SplineTransformer(n_knots=5),
        "bins": KBinsDiscretizer(8, strategy="uniform"),
        "Fourier features": rw.features.FourierFeatures(n_features=512),
    }


def data() -> dict[str, Any]:
    folder = os.environ.get("RANKWISE_DATA")
    if not folder:
        raise RankwiseError("set RANKWISE_DATA to the folder with the ohsumed and mq2008 data")
    return {name: one_set(Path(folder) / name) for name in ("mq2008", "ohsumed")}


def one_set(folder: Path) -> dict[str, Any]:
    """The mean over test parts of NDCG@10 of every map, and of the map with the best validation part of each fold."""
    values: dict[str, list[float]] = {title: [] for title in (*maps(), "chosen by validation")}
    chosen = []
    for fold in track(list(rw.io.read_folds(folder)), folder.name):
        judged, tested = {}, {}
        for title, transformer in maps().items():
            ridge = rw.RidgeRanker()
            model = ridge if transformer is None else rw.MappedRanker(transformer, ridge)
            judged[title] = clone(model).fit(fold.train).score(fold.validation)
            tested[title] = model.fit(fold.train, validation=fold.validation).score(fold.test)
            values[title].append(tested[title])
        best = max(judged, key=lambda title: judged[title])
        chosen.append(best)
        values["chosen by validation"].append(tested[best])
    return {"values": values, "chosen": chosen}


def data_table(found: dict[str, Any]) -> str:
    rows = [
        [title, *(f"{np.mean(found[name]['values'][title]):.4f}" for name in found)]
        for title in next(iter(found.values()))["values"]
    ]
    return markdown_table(
        ["map before `RidgeRanker`", *({"mq2008": "MQ2008", "ohsumed": "OHSUMED"}[n] for n in found)], rows
    )


PARTS: dict[str, Callable[[], dict[str, Any]]] = {"shapes": shapes, "budget": budget, "memory": memory, "data": data}
TABLES = {"shapes": shapes_table, "memory": memory_table, "data": data_table}
DRAWN = {"shapes": draw_shapes, "budget": draw_budget}


def _known() -> dict[str, Any]:
    """The numbers so far."""
    return json.loads(NUMBERS.read_text(encoding="utf-8")) if NUMBERS.exists() else {}


def main(names: list[str]) -> int:
    found = _known()
    redraw = "--redraw" in names
    for name in [one for one in names if one != "--redraw"] or PARTS:
        if not redraw:
            made = PARTS[name]()
            found = {**_known(), name: made}  # another part may have been written meanwhile
            with writing(NUMBERS) as part:
                part.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        if name in DRAWN:
            DRAWN[name](found[name])
        if name in TABLES:
            write_block(PAGE, name, TABLES[name](found[name]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
