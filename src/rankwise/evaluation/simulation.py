"""Online rankers on a simulated stream: time-averaged measure, mistakes and bounds.

The experiment of the online perceptron for ranking: queries that a hidden unit vector ranks perfectly with a margin,
two perceptrons, online ListNet, and Algorithm 2 as the paper prints it. The last two need a step size, which is chosen
on another stream. :func:`simulate` collects all numbers as one plain dict, and :func:`draw_simulation` draws that dict.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise._figures import COLORS, FAINT, house_style, new_figure
from rankwise.queries.queries import Queries
from rankwise.synthetic.streams import Stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rankwise.guarantees._bound import Bound
    from rankwise.rankers.online.learner import OnlineLearner

MEASURE = "nDCG@10"
PRINTED = "Algorithm 2"  # margin 1 and the weights of equations (10), (11) and (24), with a tuned step
GRID = tuple(4.0**power for power in range(-2, 6))
_TUNING_ROUNDS = 2_000
_POINTS = 160  # rounds at which the ledger is read, at equal steps of the logarithm


def simulate(
    stream: Stream, measure: str = MEASURE, on_rounds: Callable[[int], object] = lambda rounds: None
) -> dict[str, Any]:
    """Run the two perceptrons, online ListNet and Algorithm 2 of the paper over one stream.

    Parameters
    ----------
    stream : Stream
        The stream; see :func:`rankwise.synthetic.separable_stream`, :func:`rankwise.synthetic.noisy_stream`.
    measure : str, default="nDCG@10"
        The measure to report, for which the SLAM perceptron learns.
    on_rounds : callable, default=None
        Called with the number of rounds since the last call; their sum is :func:`total_rounds`.

    Returns
    -------
    dict
        Plain numbers, lists and texts: the ``stream``; how the steps of ListNet (``tuning``) and of Algorithm 2
        (``tuning_printed``) were tuned; the ``rounds`` at which the account was read; for each of the ``rankers`` its
        ``mean`` measure (None before there is one), ``mistakes`` and cumulative ``loss`` there, what bounds its loss
        (``bounds``), and the ``floor`` that the smallest of these puts under the mean.

    Examples
    --------
    >>> from rankwise.synthetic import separable_stream
    >>> found = simulate(separable_stream(50, documents=5, features=3))
    >>> list(found["rankers"])
    ['SLAMPerceptron', 'MaxPairPerceptron', 'ListNet', 'Algorithm 2']
    """
    from rankwise.rankers._base import registered

    kinds: Any = registered()

    def as_printed(eta: float) -> "OnlineLearner":
        learner: OnlineLearner = kinds["SLAMPerceptron"](measure, **paper_options(measure), eta=eta)
        return learner

    tuning = _tune("ListNet", lambda eta: kinds["ListNet"](measure, eta=eta), stream, on_rounds)
    tuning_printed = _tune(PRINTED, as_printed, stream, on_rounds)
    # equal steps of the logarithm, because early rounds show how fast a ranker learns
    at = reading_rounds(stream.n_queries)
    rankers = {
        "SLAMPerceptron": kinds["SLAMPerceptron"](measure),
        "MaxPairPerceptron": kinds["MaxPairPerceptron"](measure),
        "ListNet": kinds["ListNet"](measure, eta=tuning["eta"]),
        PRINTED: as_printed(tuning_printed["eta"]),
    }
    return {
        "stream": asdict(stream),
        "measure": measure,
        "tuning": tuning,
        "tuning_printed": tuning_printed,
        "rounds": at,
        "rankers": {name: _account(ranker, stream, at, on_rounds) for name, ranker in rankers.items()},
    }


def paper_options(measure: str) -> dict[str, Any]:
    """The parameters of `SLAMPerceptron` that make it Algorithm 2 of the paper, apart from its step."""
    return {"margin": 1.0, "weights": "ap_003" if measure.startswith("AP") else "ndcg_003"}


def total_rounds(stream: Stream) -> int:
    """Number of rounds that :func:`simulate` takes, tuning included."""
    return 4 * stream.n_queries + 2 * len(GRID) * _tuning_stream(stream).n_queries


def reading_rounds(rounds: int) -> list[int]:
    """Rounds at equal steps of the logarithm, the powers of ten and the last round among them."""
    steps = np.unique(np.geomspace(1, rounds, _POINTS).round().astype(np.int64)).tolist()
    tens = [10**power for power in range(20) if 10**power <= rounds]
    return sorted({*steps, *tens, rounds})


def _tuning_stream(stream: Stream) -> Stream:
    """A shorter stream with another comparator and other queries."""
    return replace(stream, n_queries=min(stream.n_queries, _TUNING_ROUNDS), seed=stream.seed + 1)


def _tune(
    name: str, make: "Callable[[float], OnlineLearner]", stream: Stream, on_rounds: Callable[[int], object]
) -> dict[str, Any]:
    """The step size with the best time-averaged measure on another stream."""
    own = _tuning_stream(stream)
    queries = own.queries()
    means = {}
    for eta in GRID:
        means[eta] = make(eta).fit(queries).ledger_.mean
        on_rounds(len(queries))
    # tuning on another stream keeps the reported one unseen
    best = max(means, key=lambda eta: means[eta])
    grid = [{"eta": eta, "mean": mean} for eta, mean in means.items()]
    return {"ranker": name, "seed": own.seed, "rounds": own.n_queries, "grid": grid, "eta": best}


def _account(
    ranker: "OnlineLearner", stream: Stream, at: list[int], on_rounds: Callable[[int], object]
) -> dict[str, Any]:
    """The ledger of the ranker after each of the rounds ``at``."""
    read: list[tuple[float | None, int, float, float]] = []
    for part in _cut(stream.blocks(), at):
        ledger = ranker.partial_fit(part).ledger_
        on_rounds(len(part))
        if ledger.rounds == at[len(read)]:
            mean = ledger.mean if ledger.counted else None  # the measure is undefined on all queries so far
            read.append((mean, ledger.mistakes, ledger.loss, ledger.counted))
    means, mistakes, losses, counted = (list(column) for column in zip(*read, strict=True))
    bounds = _bounds(ranker, stream)
    # every bound holds, so the smallest one counts
    most = min((bound.value for bound in bounds), default=None)
    floor = None if most is None else [max(0.0, 1.0 - most / rounds) if rounds else 0.0 for rounds in counted]
    return {
        "mean": means,
        "mistakes": mistakes,
        "loss": losses,
        "bounds": [bound.to_dict() for bound in bounds],
        "floor": floor,
    }


def _cut(blocks: Iterator[Queries], at: list[int]) -> Iterator[Queries]:
    """The stream in parts that end where its blocks end and at the rounds ``at``."""
    done = 0
    for block in blocks:
        ends = [rounds - done for rounds in at if 0 < rounds - done < len(block)]
        for first, last in zip([0, *ends], [*ends, len(block)], strict=True):
            yield block[first:last]
        done += len(block)


def _bounds(ranker: "OnlineLearner", stream: Stream) -> "list[Bound]":
    """What bounds the cumulative loss: the margin of a separable stream, the comparator of a noisy one.

    A mistake costs at most 1, so a bound on mistakes bounds the loss as well. ListNet has no bound of this kind, and in
    a stream that drifts no single comparator is a good one.
    """
    if ranker.ledger_.config.update != "mistakes" or stream.angle:
        return []
    if stream.noise:
        return ranker.ledger_.bounds(stream.blocks(), comparator=stream.comparator() / stream.margin)
    return ranker.ledger_.bounds(gamma=stream.margin)


# -------------------------------------------------------------------------------------------------- simulation figure
_STYLES = ("-", "-", (0, (4, 1.2)), (0, (6, 1, 1, 1)))
_FLOOR = (0, (1, 1.4))


def draw_simulation(found: Mapping[str, Any]) -> "Figure":
    """Draw the time-averaged measure with its floors, left, and the cumulative losses under their bounds, right.

    Parameters
    ----------
    found : dict
        What :func:`simulate` returned.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    figure = new_figure(7.6, 3.3)
    rounds = np.asarray(found["rounds"])
    with house_style():
        left, right = figure.subplots(1, 2)
        highest = 0.0
        for (name, run), color, style in zip(found["rankers"].items(), COLORS, _STYLES, strict=False):
            left.plot(rounds, np.asarray(run["mean"], dtype=float), color=color, linestyle=style, label=name)
            right.plot(rounds, run["loss"], color=color, linestyle=style)
            if run["floor"] is None:
                continue
            useful = np.asarray(run["floor"]) > 0  # before that the bound is vacuous
            left.plot(rounds[useful], np.asarray(run["floor"])[useful], color=color, linestyle=_FLOOR, linewidth=1.2)
            most = min(bound["value"] for bound in run["bounds"])
            right.axhline(most, color=color, linestyle=_FLOOR, linewidth=1.2)
            highest = max(highest, most)
        left.set(xscale="log", xlabel="round", ylim=(0.0, 1.03), title=f"time-averaged {found['measure']}")
        right.set(xscale="log", yscale="log", xlabel="round", title=f"cumulative loss 1 - {found['measure']}")
        if highest:
            left.plot([], [], color=FAINT, linestyle=_FLOOR, linewidth=1.2, label="guaranteed: 1 - bound / round")
            right.plot([], [], color=FAINT, linestyle=_FLOOR, linewidth=1.2, label="bound for the margin of the stream")
            right.set_ylim(top=3 * highest)
            right.legend(loc="upper left", bbox_to_anchor=(0.0, 0.82))
        left.legend(loc="lower left", bbox_to_anchor=(0.0, 0.03))
        figure.suptitle(_about(found), x=0.01, ha="left", fontsize=7.5, color=FAINT)
    return figure


def _about(found: Mapping[str, Any]) -> str:
    """The settings of the simulation in one line."""
    stream, tuning = found["stream"], found["tuning"]
    fewest, most = stream["documents"]
    parts = [
        f"{fewest if fewest == most else f'{fewest} to {most}'} documents",
        f"{stream['features']} features",
        f"{stream['grades']} grades",
        f"margin {stream['margin']:g}",
        *([f"noise {stream['noise']:g}"] if stream["noise"] else []),
        *([f"drift {stream['angle']:g}"] if stream["angle"] else []),
        f"seed {stream['seed']}",
        f"steps of ListNet ({tuning['eta']:g}) and {PRINTED} ({found['tuning_printed']['eta']:g}) chosen on another "
        "stream",
    ]
    return ", ".join(parts)
