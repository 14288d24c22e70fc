r"""Where the annealing stops if a bound decides: at the stage with the smallest bound on its smoothed loss.

A smaller sigma brings the smoothed measure closer to the measure, and its loss becomes steeper: what the training
queries say about future ones is worth less. With the losses phi_1, ..., phi_T of T stages, all fixed beforehand, with
probability 1 - delta over n independent queries, for every w and every stage t at once,

.. math:: E\, \varphi_t(X w) \le \frac1n \sum_q \varphi_t(X_q w) + \text{complexity}(\sigma_t, \lVert w\rVert) +
          \text{tail}(\delta / T),

by :mod:`rankwise.guarantees.bounds.uniform` for each stage at delta / T and the union over stages. So the bound of a
stage that was chosen after all of them were seen holds, too: certificates print it. :class:`StageBound` computes the
right side, to choose by.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from rankwise._arrays import Vector
from rankwise.guarantees._bound import Bound, smallest
from rankwise.guarantees.bounds.uniform import for_fitted_norm
from rankwise.losses._base import SmoothedMeasure
from rankwise.queries.chunks import radius_of
from rankwise.queries.source import QuerySource
from rankwise.rankers.certificate.claims import largest_labels, lipschitz_balls

# Probability that one of the bounds of a fit fails. It enters by a logarithm and hardly changes a choice.
_DELTA = 0.05


@dataclass(frozen=True, kw_only=True)
class StageBound:
    """The smallest of the uniform bounds of a stage, for the radius and the length of the queries at hand.

    Attributes
    ----------
    loss : SmoothedMeasure
        The smoothed loss, at any width.
    radius : float
        The largest radius of a query.
    longest : int
        The number of documents of the longest query.
    highest : float
        The largest label.
    stages : int
        T, the number of stages that are compared.
    """

    loss: SmoothedMeasure
    radius: float
    longest: int
    highest: float
    stages: int

    @classmethod
    def of(cls, loss: SmoothedMeasure, sources: Sequence[QuerySource], stages: int, n_jobs: int | None) -> Self:
        """From the queries that are learned from."""
        return cls(
            loss=loss,
            radius=max(radius_of(queries, n_jobs) for queries in sources),
            longest=max(int(queries.sizes.max(initial=1)) for queries in sources),
            highest=max(float(queries.apply(largest_labels).max(initial=0.0)) for queries in sources),
            stages=stages,
        )

    def __call__(self, sigma: float, risk: float, coef: Vector, n: int) -> float:
        """The bound of weights whose mean smoothed loss over n queries is ``risk``, at most the largest loss possible.

        Parameters
        ----------
        sigma : float
            The width of the stage.
        risk : float
            The mean smoothed loss at this width.
        coef : ndarray, shape (n_features,)
            The weights on raw features.
        n : int
            The number of queries.

        Returns
        -------
        float
            The bound; infinite if the queries have no constants.
        """
        loss, R, m = self.loss.at_sigma(sigma), self.radius, self.longest
        G = loss.lipschitz_l1(m)
        if not (n and R > 0 and 0 < G < math.inf):
            return math.inf

        def span(W: float) -> tuple[float, float]:
            low, high = loss.range(W * R, m, (0.0, self.highest))
            return float(low), float(high)

        balls = lipschitz_balls(span, G, R, m, n, len(coef))
        l2, l1 = float(np.linalg.norm(coef)), float(np.abs(coef).sum())

        def fitted(kind: str, delta: float) -> Bound:
            def at(W: float, level: float) -> Bound:
                low, high = span(W)
                return balls[kind](min(max(risk, low), high), W, level)  # rounding may take a mean out of its interval

            return for_fitted_norm(at, norm=l1 if kind == "l1" else l2, W_0=1 / R, delta=delta)

        found = smallest(*(partial(fitted, kind) for kind in balls), delta=_DELTA / self.stages)
        return min(found.value, span(l2)[1])
