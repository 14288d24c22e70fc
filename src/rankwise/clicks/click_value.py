"""`ClickValue`: the value or the gain of a ranking from clicks, with its bound and everything that it rests on."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rankwise._tables import ShownAsFacts
from rankwise.guarantees._bound import Bound, Precondition, Scope, plain_fields

SOURCE = (
    "clipped inverse propensities (Joachims, Swaminathan and Schnabel 2017) with betting (Waudby-Smith and Ramdas 2024)"
)


@dataclass(frozen=True, kw_only=True)
class ClickValue(ShownAsFacts):
    """What :func:`~rankwise.clicks.value` and :func:`~rankwise.clicks.gain` return.

    Attributes
    ----------
    kind : {"value", "gain"}
        What it is.
    of : str
        The quantity in words, with its unit.
    estimate : float
        The clipped estimate, by the estimated propensities.
    lower : float
        The bound: the quantity is at least this with probability 1 - delta, if the preconditions hold.
    self_normalized : float
        The estimate rescaled by the clicks that clipping took away. No guarantee.
    doubly_robust : float
        The estimate with a model of attractiveness; NaN if it cannot be computed. No guarantee.
    n, clicks : int
        Sessions, and clicks in them.
    delta, alpha, paid : float
        Probability that the bound fails: as a whole, by the bets for one tau, and by the propensities' ends.
    tau : float
        The clipping of the bound.
    taus : tuple of float
        All that were tried.
    k : int
        The cut-off of DCG.
    span : tuple of float
        The smallest and the largest value of a session, known before any click.
    preconditions : tuple of Precondition
        What has to be true.
    warnings : tuple of str
        What this log cannot show.
    """

    SCOPES: ClassVar[Mapping[str, Scope]] = {
        name: Scope(
            f"{what} over future sessions of the same readers and queries",
            "session",
            "once, at a log whose end was fixed beforehand",
            "tau among those given, which share delta; not the ranking, tau, k or the sessions by these clicks "
            "(several rankings: divide delta among them)",
        )
        for name, what in (("value", "mean DCG of attractiveness"), ("gain", "mean difference of two rankings"))
    }

    kind: str
    of: str
    estimate: float
    lower: float
    self_normalized: float
    doubly_robust: float
    n: int
    clicks: int
    delta: float
    alpha: float
    paid: float
    tau: float
    taus: tuple[float, ...]
    k: int
    span: tuple[float, float]
    preconditions: tuple[Precondition, ...]
    warnings: tuple[str, ...] = ()

    @property
    def applies(self) -> bool | None:
        """False if a precondition is not met, True if all are known to be, None if some are only assumed."""
        return self.bound().applies

    @property
    def scope(self) -> Scope:
        """What the bound is about, when it may be read, and the choices after which it holds."""
        return self.SCOPES[self.kind]

    @property
    def certified(self) -> bool:
        """Whether the bound is above 0 and no precondition is known to be broken: for a gain, better with certainty."""
        return self.lower > 0 and self.applies is not False

    def bound(self) -> Bound:
        """The lower bound with its formula, as certificates hold it.

        Returns
        -------
        Bound
            The bound.
        """
        return Bound(
            name=f"Clicks, {self.kind}",
            bounds=self.of,
            statement="betting's lower end at alpha of mean click D/max(p+, tau)"
            + (", minus click D/p- of losses" if self.kind == "gain" else ""),
            value=self.lower,
            terms={
                **{"sessions": float(self.n), "tau": self.tau, "delta": self.delta, "alpha": self.alpha},
                **{"paid": self.paid, "smallest": self.span[0], "largest": self.span[1]},
            },
            preconditions=self.preconditions,
            source=SOURCE,
            floor=self.span[0] if math.isfinite(self.span[0]) else -math.inf,
            side="at least",
            kind="hold-out",
        )

    def to_dict(self) -> dict[str, Any]:
        """The value as plain numbers and strings; infinite and undefined numbers are None."""

        def plain(number: float) -> float | None:
            return number if math.isfinite(number) else None

        found = {name: getattr(self, name) for name in ("kind", "of", "n", "clicks", "delta", "alpha", "paid", "tau")}
        numbers = ("estimate", "lower", "self_normalized", "doubly_robust")
        found |= {name: plain(getattr(self, name)) for name in numbers}
        rest = ("k", "taus", "span", "certified", "applies", "preconditions", "scope", "warnings")
        return found | plain_fields(self, *rest) | {"span": [plain(one) for one in self.span]}

    def __repr__(self) -> str:
        sign = "+" if self.kind == "gain" else ""
        return (
            f"{self.of} >= {self.lower:{sign}.4f} with probability {1 - self.delta:g} (estimate "
            f"{self.estimate:{sign}.4f}, {self.n:,} sessions, tau = {self.tau:g})"
        )

    def summary(self) -> str:
        """The bound, the estimates, the preconditions and the scope, line by line.

        Returns
        -------
        str
            The text.
        """
        sign = "+" if self.kind == "gain" else ""
        estimates = (
            f"point estimates without a guarantee: clipped {self.estimate:{sign}.4f}, self-normalized "
            f"{self.self_normalized:{sign}.4f}, doubly robust {self.doubly_robust:{sign}.4f}"
        )
        conditions, notes = (f"- {one}" for one in self.preconditions), (f"warning: {one}" for one in self.warnings)
        return "\n".join([repr(self), estimates, "holds if", *conditions, str(self.scope), *notes])
