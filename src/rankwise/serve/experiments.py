"""Two models side by side: shadow, split and team-draft interleaving, with read-outs that may be read at any time.

In ``shadow`` and ``interleave`` both models are compared on the same ranking, and every judged ranking is a value of a
:class:`~rankwise.guarantees.holdout.sequences.RunningMean`. In ``split`` every user sees one model, so the user is the
unit: :class:`SplitAccount` counts the first ranking of each.

Which side a user sees depends on a hash of the experiment's name and of the user (or of the ranking, where no user is
named), never on what happened before.
"""

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.clicks.preferences import differences, team_draft
from rankwise.guarantees._bound import Precondition, Scope
from rankwise.guarantees.holdout.sequences import ConfidenceSequence, RunningMean
from rankwise.serve.structs import ExperimentAnswer, ExperimentRequest, IntervalAnswer

Order = NDArray[np.int64]

_DRAFTED = 50  # positions that a team draft decides

# What a ranking of a split keeps if it counts: the side, and the number of the user in the order of coming. Other
# rankings of the same user keep the side alone.
SPLIT_UNIT = struct.Struct("<Bq")

STATEMENTS = {
    "shadow": "mean, over the judged rankings so far, of the expected {measure} of the challenger's order minus that "
    "of the order shown, each given the earlier ones",
    "split": "expected {measure} of a user's first ranking by the challenger minus that by the model; a first ranking "
    "without a relevant document or a click counts as 0",
    "interleave": "mean, over the judged rankings so far, of the expected credit, each given the earlier ones: 1 if "
    "the challenger's team has more of the clicks or grades, -1 if the model's team has, 0 otherwise",
}
_READ = "at any time, and as often as you like; stop when it is decided"
SCOPES = {
    "shadow": Scope(
        "the rankings that were shown and judged so far, with a relevant document", "ranking", _READ,
        "when to look and when to stop",
    ),
    "split": Scope(
        "users of the requests for the model, each with the first ranking that was logged during the experiment",
        "user; the ranking, where the request names no user", _READ, "when to look and when to stop",
    ),
    "interleave": Scope(
        "the rankings that were shown and judged so far",
        "ranking; its coins are its own, so the same user may return", _READ, "when to look and when to stop",
    ),
}  # fmt: skip


def draw(*parts: str) -> int:
    """64 bits that depend on the parts alone."""
    return int.from_bytes(hashlib.blake2b("\0".join(parts).encode(), digest_size=8).digest(), "little")


def interleave(a: Order, b: Order, seed: int) -> tuple[Order, NDArray[np.uint8]]:
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


class SplitAccount:
    r"""The account of a split experiment: one value per user, in the order in which users came.

    Parameters
    ----------
    share : float
        Probability of the challenger.
    delta : float
        Probability that the interval ever misses the difference.

    Attributes
    ----------
    sequence : ConfidenceSequence
        On the terms of :func:`~rankwise.clicks.preferences.differences`.
    waiting : dict of int to tuple of int and float
        Side and value of users who came after one whose ranking is not closed yet.

    Notes
    -----
    The value y of a user is the measure of the first ranking that the service showed them in the experiment. It is
    known when that ranking is closed, and 0 if nothing was judged or clicked by then.

    Proof. User i is the i-th to come. The side is drawn by a hash, before anything of the user is seen: the challenger
    with probability s, independent of the users before and of what this user would do on either side. So the term
    x_i = (y_i - c_i) (1[challenger]/s - 1[model]/(1 - s)), with c_i computed from earlier users, has the mean
    E[y_i given challenger] - E[y_i given model] given the earlier users. If this difference is the same for all i, the
    confidence sequence on the x_i holds at all times with probability 1 - delta. If it changes and never is above 0,
    the capital of the bets on a mean above 0 is a supermartingale, so the challenger is named with probability delta/2
    at most; likewise for the model.

    Two things would break it. Counting every ranking: the rankings of a user share a side and are alike, so their
    number is not the number of draws. Taking users in the order in which their rankings are closed: a click may close
    a ranking sooner, so the side of the next one would not be a fair draw. Hence values wait for users who came before,
    at most until the end of the window.
    """

    def __init__(self, share: float, delta: float) -> None:
        self.share, self.total = share, 0.0
        most = max(1 / share, 1 / (1 - share))
        # an even number of steps has 0 on the grid, a difference that can be refuted
        self.sequence = ConfidenceSequence(delta, span=(-most, most), grid=1_000)
        self.waiting: dict[int, tuple[int, float]] = {}

    def add(self, closed: Iterable[tuple[int, int, float]]) -> None:
        """Add the users whose rankings were closed.

        Parameters
        ----------
        closed : iterable of tuple of int, int and float
            The number of the user in the order of coming (from 0), the side (1 is the challenger), and the value.
        """
        self.waiting.update({number: (side, value) for number, side, value in closed})
        ready: list[tuple[int, float]] = []
        while (number := self.sequence.n + len(ready)) in self.waiting:
            ready.append(self.waiting.pop(number))
        if ready:
            side, y = np.array(ready).T
            x, self.total = differences(y, side == 1, self.share, self.total, self.sequence.n)
            self.sequence.update(x)

    def interval(self) -> IntervalAnswer:
        """The difference with its interval, cut at what is possible."""
        found = self.sequence
        mean = None if not found.n else min(1.0, max(-1.0, found.mean))
        return IntervalAnswer(found.n, mean, max(-1.0, found.low), min(1.0, found.high), found.delta)

    def to_dict(self) -> dict[str, Any]:
        """Plain values from which :meth:`from_dict` continues."""
        waiting = [[number, *found] for number, found in self.waiting.items()]
        return {"total": self.total, "waiting": waiting, "sequence": self.sequence.to_dict()}

    @classmethod
    def from_dict(cls, share: float, stored: dict[str, Any]) -> "SplitAccount":
        """The account that :meth:`to_dict` described."""
        sequence = ConfidenceSequence.from_dict(stored["sequence"])
        found = cls(share, sequence.delta)
        found.sequence, found.total = sequence, stored["total"]
        found.waiting = {number: (side, value) for number, side, value in stored["waiting"]}
        return found


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
    clicked : int, default=0
        Rankings whose labels came from clicks.
    account : SplitAccount or RunningMean, default=None
        What was found; None begins with nothing.
    """

    request: ExperimentRequest
    since: int
    running: bool = True
    clicked: int = 0
    account: Any = None

    def __post_init__(self) -> None:
        if self.account is None:
            of = self.request
            self.account = (
                SplitAccount(of.share, of.delta) if of.kind == "split" else RunningMean(of.delta, (-1.0, 1.0))
            )

    def assign(self, who: str) -> tuple[int, int]:
        """The unit of a split that a user is, as 64 bits, and the side that it sees: always the same."""
        unit = draw(self.request.name, str(self.since), who)
        return unit, int(unit < self.request.share * 2.0**64)

    def seed(self, ranking: str) -> int:
        """The coins of one interleaved ranking."""
        return draw(self.request.name, str(self.since), ranking)

    def answer(self, measure: str = "measure", learning: bool = False) -> ExperimentAnswer:
        """The read-out.

        Parameters
        ----------
        measure : str, default="measure"
            The measure of the model, in words.
        learning : bool, default=False
            Whether one of the models learns now.

        Returns
        -------
        ExperimentAnswer
            The difference with its interval, and what it is about.
        """
        of, scope = self.request, SCOPES[self.request.kind]
        if of.kind == "split":
            found = self.account.interval()
            # 0 is on the grid: an end of exactly 0 says that 0 is refuted, too
            above, below = found.low >= 0, found.high <= 0
        else:
            running = self.account
            found = as_interval(running)
            above, below = found.low > 0, found.high < 0
        crossed = found.low > found.high  # a precondition is refuted, so nobody has won
        winner = None if crossed else of.challenger if above else of.model if below else None
        statement = STATEMENTS[of.kind].format(measure=measure)
        conditions = [str(one) for one in self._preconditions(learning, crossed)]
        return ExperimentAnswer(
            of.name, of.kind, of.model, of.challenger, self.running, self.since, found, winner, statement,
            scope.to_dict(), conditions,
        )  # fmt: skip

    def _preconditions(self, learning: bool, crossed: bool) -> list[Precondition]:
        """What has to be true for the read-out."""
        of = self.request
        if of.kind == "split":
            return [
                Precondition(f"a hash assigned each unit to the challenger with probability {of.share:g}", True),
                Precondition("nobody chose user ids, or changed them, because of the side that they lead to"),
                Precondition("what one user does is independent of the side that other users see"),
                Precondition(
                    "the difference is the same for all users; if it changes, the interval is not proved, and the "
                    "decision still is: it names a model that was never better with probability at most "
                    f"{of.delta:g}",
                    False if learning or crossed else None,
                ),
            ]
        if of.kind == "shadow":
            return [Precondition("labels do not depend on which order was shown", False if self.clicked else None)]
        return [
            Precondition("a hash of the ranking's id tossed fair coins for the teams", True),
            Precondition("readers do not see the teams, and do not know the coins"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a snapshot, apart from the request."""
        kept = {"since": self.since, "running": self.running, "clicked": self.clicked}
        return {**kept, "account": self.account.to_dict()}

    @classmethod
    def from_dict(cls, request: ExperimentRequest, stored: dict[str, Any]) -> "Experiment":
        """The experiment that :meth:`to_dict` described."""
        kept = stored["account"]
        account: Any = SplitAccount.from_dict(request.share, kept) if request.kind == "split" else resume_mean(kept)
        return cls(request, stored["since"], stored["running"], stored["clicked"], account)


def resume_mean(stored: dict[str, Any]) -> RunningMean:
    """The running mean whose ``to_dict`` was stored."""
    return RunningMean(stored["delta"], tuple(stored["span"]), n=stored["n"], total=stored["total"])


def as_interval(running: RunningMean) -> IntervalAnswer:
    """A running mean as it is sent."""
    mean = running.mean if running.n else None
    return IntervalAnswer(running.n, mean, running.low, running.high, running.delta)
