"""Two models side by side: shadow, split and team-draft interleaving, with read-outs that may be looked at at any time.

Which list goes to which side depends on a hash of the experiment's name and of the user (or of the ranking), never on
what happened before, so that every read-out is one of :class:`~rankwise.guarantees.holdout.sequences.RunningMean`. Both
models may learn meanwhile: what is bounded is the mean of the expected outcomes so far.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.clicks.preferences import team_draft
from rankwise.guarantees.holdout.sequences import RunningMean
from rankwise.serve.structs import ExperimentAnswer, ExperimentRequest, Interval

Order = NDArray[np.int64]

_DRAFTED = 50  # positions that a team draft decides

STATEMENTS = {
    "shadow": "measure of the challenger's order less that of the order shown, on the same lists and labels",
    "split": "measure of the lists that the challenger showed less that of the lists that the model showed",
    "interleave": "share of lists whose clicks are for the challenger's team less the share for the model's team",
}


def draw(*parts: str) -> int:
    """64 bits that depend on the parts alone."""
    return int.from_bytes(hashlib.blake2b("\0".join(parts).encode(), digest_size=8).digest(), "little")


def interleaved(a: Order, b: Order, seed: int) -> tuple[Order, NDArray[np.uint8]]:
    """Interleave two orders of the same documents by team draft.

    Parameters
    ----------
    a, b : ndarray of int64, shape (n_documents,)
        Documents from best to worst, by either ranker.
    seed : int
        Of the coins.

    Returns
    -------
    order : ndarray of int64, shape (n_documents,)
        The interleaved documents, best first; what no reader reaches follows in the order of ``a``.
    team : ndarray of uint8, shape (n_documents,)
        For each document (not position) who picked it: 0 for a, 1 for b, 255 for nobody.
    """
    team = np.full(len(a), 255, np.uint8)
    if not len(a):
        return a, team
    page = team_draft(a, b, _DRAFTED, np.random.default_rng(seed))
    team[page.rows] = page.team
    return np.concatenate([page.rows, a[team[a] == 255]]), team


@dataclass
class Experiment:
    """One experiment and what was found so far.

    Parameters
    ----------
    request : ExperimentRequest
        What was asked for.
    since : int
        The event that began it.
    running : bool, default=True
        Whether rankings still take part.
    sides : list of RunningMean
        The outcome of the model and of the challenger for a split; otherwise one, of the difference.
    """

    request: ExperimentRequest
    since: int
    running: bool = True
    sides: list[RunningMean] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.sides:
            delta = self.request.delta
            split = self.request.kind == "split"  # two intervals share delta
            self.sides = (
                [RunningMean(delta / 2), RunningMean(delta / 2)] if split else [RunningMean(delta, (-1.0, 1.0))]
            )

    def arm(self, who: str) -> int:
        """Which side of a split a user sees, 0 or 1, always the same."""
        return int(draw(self.request.name, str(self.since), who) < self.request.share * 2.0**64)

    def seed(self, ranking: str) -> int:
        """The coins of one interleaved ranking."""
        return draw(self.request.name, str(self.since), ranking)

    def add(self, side: int, values: Any) -> None:
        """Add the outcome of closed rankings."""
        self.sides[side if len(self.sides) == 2 else 0].update(values)

    def difference(self) -> Interval:
        """The challenger less the model, with an interval at all times."""
        if len(self.sides) == 1:
            return as_interval(self.sides[0])
        model, challenger = self.sides
        radius = model.radius + challenger.radius
        mean = challenger.mean - model.mean
        known = model.n > 0 and challenger.n > 0
        low, high = (max(-1.0, mean - radius), min(1.0, mean + radius)) if known else (-1.0, 1.0)
        return Interval(model.n + challenger.n, mean if known else None, low, high, self.request.delta)

    def answer(self) -> ExperimentAnswer:
        """The read-out."""
        of, found = self.request, self.difference()
        decided = found.low > 0 or found.high < 0
        return ExperimentAnswer(
            of.name, of.kind, of.model, of.challenger, self.running, self.since, found, STATEMENTS[of.kind], decided
        )


def as_interval(running: RunningMean) -> Interval:
    """A running mean as it is sent."""
    mean = running.mean if running.n else None
    return Interval(running.n, mean, running.low, running.high, running.delta)
