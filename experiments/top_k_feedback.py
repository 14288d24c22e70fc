"""Learning from the labels of the first k documents shown: regret against its bound, and what one label cannot tell.

``python3 run.py python -m experiments.top_k_feedback`` runs both parts, writes docs/top_k_feedback.json and the tables
of docs/online.md. Steps and probabilities of exploration are those of :func:`rankwise.guarantees.top_k_settings`, so
nothing is tuned.
"""

import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rankwise as rw
from experiments.pages import DOCS, code_pieces, markdown_table, write_block
from rankwise.guarantees import top_k_regret, top_k_settings
from rankwise.losses import GivenSoftmax, Loss, PairHinge
from rankwise.losses._base import registered
from rankwise.losses.compute import PreparedLists, loss_lists
from rankwise.measures import NDCG
from rankwise.solvers.online.config import OnlineConfig, State
from rankwise.solvers.online.loop import RoundRunner, run_rounds
from rankwise.solvers.online.top_k_rounds import TopKRunner, TopKState

PAGE = DOCS / "online.md"
DOCUMENTS, FEATURES, W = 10, 5, 3.0
ROUNDS = (1_000, 4_000, 16_000)
RUNS = 4
CASES: list[tuple[Loss, int]] = [
    (GivenSoftmax(), 1),
    (GivenSoftmax(), 5),
    (PairHinge(per_pair=False), 2),
    (PairHinge(per_pair=False), 5),
]

# Labels of two documents, and their probabilities in two streams: each document alone has the same labels in both.
LABELS = np.array([[2.0, 1.0], [0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
STREAMS = {"A": np.array([0.5, 0.4, 0.0, 0.1]), "B": np.array([0.1, 0.0, 0.4, 0.5])}


def stream(n: int) -> rw.Queries:
    """Queries of ten documents in the unit ball; relevance is a coin by a hidden vector, not all labels are equal."""
    random = np.random.default_rng(n)
    X = random.normal(size=(n, DOCUMENTS, FEATURES))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=2, keepdims=True))
    hidden = np.array([4.0, -3.0, 2.0, 0.0, 0.0])
    y = (random.random((n, DOCUMENTS)) < 1 / (1 + np.exp(1.0 - X @ hidden))).astype(float)
    y[np.arange(n), random.integers(0, DOCUMENTS // 2, n)] = 0.0
    y[np.arange(n), random.integers(DOCUMENTS // 2, DOCUMENTS, n)] = 1.0
    return rw.Queries.from_arrays(X.reshape(-1, FEATURES), y.ravel(), group=[DOCUMENTS] * n)


def losses_of(loss: Loss, queries: rw.Queries, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The loss of every round, for weights of each round or for all."""
    rows = np.repeat(weights, DOCUMENTS, axis=0) if weights.ndim == 2 else weights
    scores = (queries.X * rows).sum(axis=1)
    return loss_lists(PreparedLists.of(loss, queries.labels(), queries.start, None), scores)[0]


def best_weights(loss: Loss, queries: rw.Queries, steps: int = 400) -> NDArray[np.float64]:
    """Weights of the ball with a small total loss: the best that projected subgradient steps visit."""
    lists = PreparedLists.of(loss, queries.labels(), queries.start, None)
    w, found, least = np.zeros(FEATURES), np.zeros(FEATURES), math.inf
    for step in range(1, steps + 1):
        values, gradient = loss_lists(lists, queries.X @ w)
        if values.sum() < least:
            found, least = w, float(values.sum())
        slope = queries.X.T @ gradient
        w = w - W / math.sqrt(step) * slope / max(float(np.linalg.norm(slope)), 1e-300)
        w *= min(1.0, W / float(np.linalg.norm(w)))
    return found


def one_run(config: OnlineConfig, queries: rw.Queries, state: State) -> tuple[NDArray[np.float64], State, float]:
    """The weights of every round, the last state, and the mean NDCG@10 of what was shown."""
    n = len(queries)
    weights, shown = np.empty((n, FEATURES)), 0.0
    runner = RoundRunner if config.feedback_depth is None else TopKRunner
    for t in range(n):
        weights[t] = state.w
        state, log = run_rounds(config, state, queries, np.array([t]), 1, runner=runner)
        shown += float(log.measure[0])
    return weights, state, shown / n


def regrets() -> list[dict[str, Any]]:
    """Every case at every length."""
    rows = []
    for n in ROUNDS:
        queries = stream(n)
        from_all: dict[str, tuple[float, float]] = {}
        for loss, k in CASES:
            radius = float(np.linalg.norm(queries.X, axis=1).max())
            cost = loss.range(W * radius, DOCUMENTS, (0.0, 1.0))[1]
            known: dict[str, Any] = {
                "W": W,
                "radius": radius,
                "G": loss.term_lipschitz_l1(W * radius, DOCUMENTS, 1.0),
                "m": DOCUMENTS,
                "labels_per_term": loss.labels_per_term,
                "n": n,
            }
            least = float(losses_of(loss, queries, best_weights(loss, queries)).sum())
            eta, explore = top_k_settings(k=k, cost=cost, **known)
            settings: dict[str, Any] = {"loss": loss, "measure": NDCG(cutoff=10), "update": "always"}
            settings |= {"projection": "l2", "max_norm": W}
            found, charged, seen = [], [], []
            for seed in range(RUNS):
                config = OnlineConfig(**settings, eta=eta, feedback_depth=k, explore=explore)
                state = TopKState.drawn(FEATURES, np.random.default_rng(seed))
                weights, last, ndcg = one_run(config, queries, state)
                assert last.feedback is not None
                values = losses_of(loss, queries, weights)
                found.append(float(values.sum()) - least)
                # in the mean over the coins of the rounds
                charged.append(found[-1] + explore * float((cost - values).sum()))
                seen.append(ndcg)
            if repr(loss) not in from_all:
                every = OnlineConfig(**settings, eta=top_k_settings(k=DOCUMENTS, cost=cost, **known)[0])
                weights, _, ndcg = one_run(every, queries, State.fresh(FEATURES))
                from_all[repr(loss)] = float(losses_of(loss, queries, weights).sum()) - least, ndcg
            row = {
                "loss": repr(loss),
                "k": k,
                "n": n,
                "explore": explore,
                "eta": eta,
                "regret": float(np.mean(found)),
                "error": float(np.std(found, ddof=1) / math.sqrt(RUNS)),
                "charged": float(np.mean(charged)),
                "bound": top_k_regret(k=k, eta=eta, explore=explore, **known).value,
                "charged_bound": top_k_regret(k=k, eta=eta, explore=explore, cost=cost, **known).value,
                "all_labels": from_all[repr(loss)][0],
                "least": least,
                "ndcg": float(np.mean(seen)),
                "ndcg_all_labels": from_all[repr(loss)][1],
            }
            rows.append(row)
            print(row, flush=True)
    return rows


def expected_ndcg(order: NDArray[np.int64], chances: NDArray[np.float64]) -> float:
    """The expected NDCG of an order of the two documents; a list without gains counts 0."""
    gains, discount = 2.0**LABELS - 1, np.array([1.0, 1 / math.log2(3)])
    best = np.sort(gains, axis=1)[:, ::-1] @ discount
    return float(chances @ np.divide(gains[:, order] @ discount, best, out=np.zeros(len(LABELS)), where=best > 0))


def one_label(rounds: int = 5_000) -> dict[str, Any]:
    """Two streams that one label per list cannot tell apart: the label that is seen has the same law in both."""
    X, random = np.array([[1.0], [-1.0]]), np.random.default_rng(0)
    model = rw.OnlineRanker(GivenSoftmax(), eta=0.1, feedback_depth=1, explore=0.1)
    orders = [np.array([0, 1]), np.array([1, 0])]
    best = {name: max(expected_ndcg(order, chances) for order in orders) for name, chances in STREAMS.items()}
    regret = dict.fromkeys(STREAMS, 0.0)
    for _ in range(rounds):
        shown = model.show(X)
        label = random.choice(LABELS[:, shown.seen[0]], p=STREAMS["A"])  # in B the same labels have the same chances
        model.partial_fit(shown.labeled([label]))
        for name, chances in STREAMS.items():
            regret[name] += best[name] - expected_ndcg(shown.order, chances)
    least = min(
        best[name] - min(expected_ndcg(order, chances) for order in orders) for name, chances in STREAMS.items()
    )
    return {"rounds": rounds, "regret": regret, "least_sum": least * rounds}


def table(found: dict[str, Any]) -> str:
    """The regrets per round as the page has them."""
    titles = [
        *("loss", "k", "rounds", "exploration", "regret per round", "with exploration charged", "bound of that"),
        *("regret, all labels", "NDCG@10 shown", "NDCG@10, all labels"),
    ]
    rows = []
    for one in found["regrets"]:
        n = one["n"]
        cells = [code_pieces(one["loss"]), str(one["k"]), f"{n:,}", f"{one['explore']:.3f}"]
        cells += [f"{one['regret'] / n:.3f} ± {one['error'] / n:.3f}", f"{one['charged'] / n:.1f}"]
        cells += [f"{one['charged_bound'] / n:.1f}", f"{one['all_labels'] / n:.3f}"]
        rows.append([*cells, f"{one['ndcg']:.3f}", f"{one['ndcg_all_labels']:.3f}"])
    return markdown_table(titles, rows)


def one_label_table(found: dict[str, Any]) -> str:
    """The two streams as the page has them."""
    one = found["one_label"]
    a, b = one["regret"]["A"], one["regret"]["B"]
    titles = ["rounds", "regret of NDCG in A", "in B", "their sum", "the sum is at least, for any algorithm"]
    return markdown_table(
        titles, [[f"{one['rounds']:,}", f"{a:.1f}", f"{b:.1f}", f"{a + b:.1f}", f"{one['least_sum']:.1f}"]]
    )


def losses_table() -> str:
    """Which losses can be learned from how many labels, as the losses declare it."""
    rows = []
    for kind in registered().values():
        declared: dict[int | None, list[Loss]] = {}
        for loss in kind.examples():
            declared.setdefault(None if loss.noisy else loss.labels_per_term, []).append(loss)
        for labels, losses in declared.items():
            name = f"`{kind.name}`" if len(declared) == 1 else ", ".join(code_pieces(repr(loss)) for loss in losses)
            rows.append((labels or 99, name, "-" if labels is None else f"k >= {labels}", "yes" if kind.convex else ""))
    rows.sort(key=lambda row: row[0])
    kept = [row[1:] for row in rows if row[0] < 99]
    others = ", ".join(row[1] for row in rows if row[0] == 99)
    return markdown_table(["loss", "feedback depth", "convex: regret bound"], kept) + f"\n\nNone for: {others}."


def main() -> None:
    found = {"regrets": regrets(), "one_label": one_label()}
    (DOCS / "top_k_feedback.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for name, text in blocks(found).items():
        write_block(PAGE, name, text)


def blocks(found: dict[str, Any]) -> dict[str, str]:
    """The parts of the page."""
    return {"top k losses": losses_table(), "top k regret": table(found), "one label": one_label_table(found)}


if __name__ == "__main__":
    main()
