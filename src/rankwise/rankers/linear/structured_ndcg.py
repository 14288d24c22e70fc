"""The structured hinge for NDCG, regularised."""

from collections.abc import Sequence
from typing import Any, Self

from rankwise.data import checks
from rankwise.losses.structured_ndcg import NDCGHinge
from rankwise.measures.ndcg import NDCG
from rankwise.rankers.linear.loss_ranker import RegularisedRanker
from rankwise.solvers.batch.feature_scale import Scale


class StructuredNDCG(RegularisedRanker):
    r"""min over w of (lambda/2) norm(w - w0)^2 + mean over lists of max over rankings of [1 - NDCG@k + s'(a - a*)].

    a_i falls with the position that a ranking gives document i, a* is that of perfect rankings; see
    :class:`~rankwise.losses.NDCGHinge`.

    Parameters
    ----------
    measure : "nDCG" or "nDCG@k" of any gain and discount, which the loss bounds; with another measure, by which the
        alpha is then chosen, the loss is that of nDCG over the whole list
    normalised : a is divided by a constant of the list's length, so that G1 = 2; False is the printed form
    alpha, ball, center, row_radius, norm, tolerance, max_calls, scale : as for :class:`RankSVM`, but
        around a ridge regression unless ``center`` is given
    folds, random_state, n_jobs, verbose, missing : as for :class:`RankSVM`

    Attributes
    ----------
    coef_, alpha_, ball_, objective_, gap_, history_, path_ : as for :class:`RankSVM`

    Notes
    -----
    The most violated ranking is an assignment of documents to positions. With a cut-off its cost grows in proportion to
    the length of the list. Over whole lists and normalised it grows with the cube: 0.7 ms for 100 documents, 730 ms for
    1,000 (measured by ``experiments/loss_costs.py``). Prefer a cut-off there.

    With a cut-off and noisy lists the smallest mean loss may be that of w = 0, as for :class:`SLAMRanker`; it is so on
    OHSUMED with nDCG@10, and not on MQ2008. The default center is there for this reason.

    References
    ----------
    Chapelle, Le, Smola 2007, in the form that the perceptron paper of 2014 analyses (section 6.1).
    """

    name = "StructuredNDCG"

    def __init__(
        self,
        measure: Any = "nDCG@10",
        *,
        normalised: bool = True,
        alpha: float | Sequence[float] | str | None = None,
        ball: float | Sequence[float] | None = None,
        center: Any = "ridge",
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
        self.normalised = normalised

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return cls("nDCG@5", alpha=0.1), cls("nDCG", normalised=False, center=None, alpha=(1.0, 0.01), folds=2)

    def _loss(self) -> NDCGHinge:
        measure = self._measure()
        if not isinstance(measure, NDCG):
            return NDCGHinge(normalised=self.normalised)
        return NDCGHinge(k=measure.cutoff, gain=measure.gain, discount=measure.discount, normalised=self.normalised)
