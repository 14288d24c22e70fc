"""SVMmap: the structured hinge for average precision, regularised."""

from collections.abc import Sequence
from typing import Any, Self

from rankwise.data import checks
from rankwise.losses.structured import SVMMapHinge
from rankwise.measures.ap import AP
from rankwise.rankers.linear.loss_ranker import RegularisedRanker
from rankwise.solvers.batch.feature_scale import Scale


class SVMMap(RegularisedRanker):
    r"""min over w of (lambda/2) norm(w - w0)^2 + mean over lists of max over rankings of [1 - AP + F - F(perfect)].

    F is the mean over pairs of a relevant and another document of their difference in score, with the sign of the order
    in which a ranking puts them; see :class:`~rankwise.losses.SVMMapHinge`.

    Parameters
    ----------
    measure : by which the alpha is chosen, and what ``score`` reports; the ``rel`` of an AP also says which labels
        are relevant, and with another measure those above 0 are
    alpha, ball, center, row_radius, norm, tolerance, max_calls, scale : as for :class:`RankSVM`
    folds, random_state, n_jobs, verbose, missing : as for :class:`RankSVM`

    Attributes
    ----------
    coef_, alpha_, ball_, objective_, gap_, history_, path_ : as for :class:`RankSVM`

    Notes
    -----
    The papers write (1/2) norm(w)^2 + (C/n) sum of the losses of n lists: lambda = 1/C. A pass finds the most violated
    ranking of every list in O(m log m) and reads X once; some dozen passes a alpha are usual. The loss bounds
    1 - AP, so ``objective_`` bounds its mean over the training lists, equal scores in the worst order. G1 = 4.

    References
    ----------
    Yue, Finley, Radlinski, Joachims 2007, as compared in the study of direct optimisation.
    """

    name = "SVMMap"

    def __init__(
        self,
        measure: Any = "AP",
        *,
        alpha: float | Sequence[float] | str | None = None,
        ball: float | Sequence[float] | None = None,
        center: Any = None,
        row_radius: float | None = None,
        norm: float | None = None,
        tolerance: float = 1e-3,
        max_calls: int = 1000,
        scale: Scale = "auto",
        folds: int = 5,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
        missing: checks.Missing = "error",
    ) -> None:
        super().__init__(
            measure,
            alpha=alpha,
            ball=ball,
            center=center,
            row_radius=row_radius,
            norm=norm,
            tolerance=tolerance,
            max_calls=max_calls,
            scale=scale,
            folds=folds,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
            missing=missing,
        )

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return cls(alpha=0.01), cls("AP(rel=2)", ball=1.0)

    def _loss(self) -> SVMMapHinge:
        measure = self._measure()
        return SVMMapHinge(rel=measure.rel if isinstance(measure, AP) else None)
