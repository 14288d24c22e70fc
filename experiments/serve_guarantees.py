"""How often the service's read-outs are wrong: split experiments between equal models, and bounds that are polled.

``python3 run.py python -m experiments.serve_guarantees`` simulates both, prints the tables and writes
docs/serve_guarantees.json and the table of docs/serve.md. ``--runs`` is the number of runs of each world.

A split experiment has users of very different activity, each with a chance of their own that a ranking is good. With
equal models (lift 0) a decision is an error. The bound on the mean risk of a run is looked at after every round, and is
an error if it is ever below the mean risk.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from rankwise.guarantees import online_to_batch
from rankwise.serve.experiments import Experiment
from rankwise.serve.structs import ExperimentRequest

DOCS = Path(__file__).parents[1] / "docs"
DELTA = 0.05
RANKINGS, ROUNDS = 20_000, 50_000
BEGIN, END = "<!-- splits: python3 run.py python -m experiments.serve_guarantees -->", "<!-- end of splits -->"
SPLITS = [  # users, lift, whether all are equally active
    (30, 0.0, False),
    (300, 0.0, False),
    (10_000, 0.0, False),
    (300, 0.0, True),
    (10_000, 0.08, False),
    (10_000, 0.08, True),
]


def split(users: int, lift: float, even: bool, seed: int, rankings: int = RANKINGS) -> str | None:
    """The model that one split experiment decides for, if it does at any time."""
    random = np.random.default_rng([seed, users])
    of = Experiment(ExperimentRequest(f"test-{seed}", "split", "a", "b", delta=DELTA), 1)
    activity = np.ones(users) if even else 1 / np.arange(1, users + 1)
    who = random.choice(users, rankings, p=activity / activity.sum())
    mean = np.clip(0.7 + 0.2 * random.standard_normal(users), 0, 1)
    side = np.array([of.assign(f"u{user}")[1] for user in range(users)])
    value = random.random(rankings) < np.clip(mean + lift * side, 0, 1)[who]
    _, first = np.unique(who, return_index=True)
    came = np.sort(first)
    of.account.add((number, int(side[who[at]]), float(value[at])) for number, at in enumerate(came.tolist()))
    return of.answer().decided


def radii(rounds: int, anytime: bool) -> NDArray[np.float64]:
    """What the bound adds to the mean loss after each number of rounds."""
    return np.array([online_to_batch(L=0.0, n=n, delta=DELTA, anytime=anytime).value for n in range(1, rounds + 1)])


def ever_false(risk: NDArray[np.float64], radius: NDArray[np.float64], seed: int) -> bool:
    """Whether the bound is below the mean risk after any round of one run with losses of 0 or 1."""
    loss = np.random.default_rng(seed).random(len(risk)) < risk
    n = np.arange(1, len(risk) + 1)
    return bool((np.cumsum(loss) / n + radius < np.cumsum(risk) / n).any())


def worlds(rounds: int) -> dict[str, NDArray[np.float64]]:
    """The risk of the weights before each round."""
    return {"risk 0.3": np.full(rounds, 0.3), "risk that falls": 0.1 + 0.4 / np.sqrt(np.arange(1, rounds + 1))}


def most(runs: int, chance: float = DELTA) -> float:
    """The share of runs that an error of this probability exceeds once in a thousand times."""
    return float(binom.ppf(0.999, runs, chance)) / runs


def as_table(found: dict[str, Any]) -> str:
    """The split experiments as the page has them."""
    lines = ["| users | activity | lift | decided for the challenger | for the model |", "|---|---|---|---|---|"]
    for row in found["split"]:
        activity = "equal" if row["even"] else "Zipf"
        shares = f"{100 * row['challenger']:.1f}% | {100 * row['model']:.1f}%"
        lines.append(f"| {row['users']:,} | {activity} | {row['lift']:g} | {shares} |")
    return (
        f"{found['runs']:,} runs of {RANKINGS:,} rankings, delta {found['delta']:g}. Without a lift a decision is an "
        "error.\n\n" + "\n".join(lines)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000)
    runs = parser.parse_args().runs
    found: dict[str, Any] = {"delta": DELTA, "runs": runs, "most": most(runs), "split": [], "risk": []}
    for users, lift, even in SPLITS:
        decided = [split(users, lift, even, seed) for seed in range(runs)]
        row = {"users": users, "lift": lift, "even": even, "model": decided.count("a") / runs}
        found["split"].append(row | {"challenger": decided.count("b") / runs})
        print(found["split"][-1], flush=True)
    for name, risk in worlds(ROUNDS).items():
        row = {"world": name, "rounds": ROUNDS}
        for kind, anytime in (("anytime", True), ("one_n", False)):
            radius = radii(ROUNDS, anytime)
            row[kind] = sum(ever_false(risk, radius, seed) for seed in range(runs)) / runs
        found["risk"].append(row)
        print(row, flush=True)
    (DOCS / "serve_guarantees.json").write_text(json.dumps(found, indent=1) + "\n")
    page = DOCS / "serve.md"
    head, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    page.write_text(f"{head}{BEGIN}\n{as_table(found)}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
