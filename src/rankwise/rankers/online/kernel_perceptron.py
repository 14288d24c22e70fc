"""KernelPerceptron: the perceptrons for ranking with a kernel, by random features or by a budget of documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

import numpy as np

from rankwise._arrays import Array, Vector
from rankwise._kernels import mercer, parallel
from rankwise._parameters import NonNegativeFloat, NumberRange, PositiveFloat, PositiveInt
from rankwise._store import Store
from rankwise.errors import RankwiseError
from rankwise.features.kernel_maps import Degree, FourierFeatures, Kernel, KernelPCAMap, kernel_shape
from rankwise.losses.max_pair import MaxPair
from rankwise.losses.slam import SLAM
from rankwise.queries import checks
from rankwise.queries.queries import Queries
from rankwise.rankers._base import NOT_LINEAR, linear_scores
from rankwise.rankers.online.learner import IMPOSSIBLE, OnlineLearner, pack, read_state, unpack_ledger, unpack_state
from rankwise.solvers.online.config import OnlineConfig, State
from rankwise.solvers.online.kernel_rounds import BudgetRunner, BudgetState, MappedRunner, Removal
from rankwise.solvers.online.ledger import Ledger
from rankwise.solvers.online.loop import RoundRunner

# Mapped features without map= and budget=.
_FEATURES = 512
# The largest budget: a state of so many documents is copied in every call.
_MOST_STORED = 10_000_000


@dataclass(eq=False, repr=False, kw_only=True)
class KernelPerceptron(OnlineLearner):
    r"""The SLAM or the max-pair perceptron with a kernel, in constant memory.

    On a mistake, f <- f + eta sum_i c_i k(x_i, .), with the coefficients of the SLAM or the max-pair perceptron.

    There are two ways to keep f in constant memory. ``map=D`` takes D random Fourier features z(x) of the rbf kernel:
    f(x) = w . z(x), and the run is that of a linear perceptron on z. ``budget=B`` stores documents with their
    coefficients, s(x) = sum_j c_j k(x_j, x), for any kernel; when more than B would be stored, the documents of whole
    rounds are removed.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        Defines a mistake: a query whose first positions, down to the cut-off, are not ideal. update="slam" takes
        "nDCG", "nDCG@k" or "AP", update="max_pair" any measure.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        exp(-gamma norm(x - z)^2), x . z, or (gamma x . z + coef0)^degree; ``map`` is for "rbf".
    gamma : float, default=None
        gamma of "rbf" and "poly"; None is 1 / (number of features). Scale the features, because all count alike.
    degree : int, default=3
        The degree of "poly".
    coef0 : float, default=1.0
        The constant of "poly".
    map : int, default=None
        D, the number of random Fourier features: even. None is 512 if there is no budget.
    budget : int, default=None
        B, the largest number of stored documents; None for mapped features.
    removal : {"oldest", "smallest"}, default="oldest"
        Whose documents are removed: those of the oldest round, or of the round whose coefficients have the smallest
        norm. A round with more than B documents stores those of the largest coefficients.
    update : {"slam", "max_pair"}, default="slam"
        The step of :class:`~rankwise.SLAMPerceptron`, or of :class:`~rankwise.MaxPairPerceptron`.
    margin : float, default=0.0
        The margin of update="slam"; 0 is the scale-free perceptron.
    weights : str, default=None
        The rule for the weights v of update="slam"; None is "ndcg_tight_sym" or "ap_sym".
    eta : float, default=1.0
        The step size.
    epochs : int, default=1
        Number of passes over the queries in ``fit``.
    shuffle : bool, default=False
        Whether each pass visits the queries in a random order of its own.
    random_state : int or numpy.random.Generator, default=0
        Seed of the random features and of the shuffling.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    missing : {"error", "zero", "min"}, default="error"
        What ``fit`` and ``predict`` do with NaN in arrays: raise an error, replace it by 0, or by the smallest value
        of the feature within the query.

    Attributes
    ----------
    ledger_ : Ledger
        Rounds, mistakes, losses, and the bounds on them.
    state_ : State or BudgetState
        Everything that the next round depends on.
    map_ : FourierFeatures
        The random features; absent with a budget.

    Notes
    -----
    With ``map``, every bound of the linear perceptrons holds in the mapped space, against the best w there, and
    norm(z) = 1 bounds the radius. With ``budget``, the same bounds hold in the space of the kernel as long as nothing
    was removed: until then f is the sum of all steps, as in the proof. Once documents were removed no bound is proved,
    and none is printed.

    Memory is constant: D weights, or B documents, and the ledger's two bytes per query. A round takes O(documents D
    features), or O(documents B features).

    References
    ----------
    S. Chaudhuri, A. Tewari (2015). Perceptron like algorithms for online learning to rank. arXiv:1508.00842.

    O. Dekel, S. Shalev-Shwartz and Y. Singer (2008). The Forgetron: a kernel-based perceptron on a budget. SIAM
    Journal on Computing 37(5). doi:10.1137/060666998

    Examples
    --------
    >>> from rankwise.synthetic import kernel_stream
    >>> stream = kernel_stream(300, random_state=1)
    >>> mapped = KernelPerceptron(gamma=stream.gamma, map=256).partial_fit(stream)
    >>> stored = KernelPerceptron(gamma=stream.gamma, budget=200).partial_fit(stream)
    >>> mapped.ledger_.rounds, stored.state_.stored <= 200
    (300, True)
    """

    name = "KernelPerceptron"

    eta: PositiveFloat = 1.0
    kernel: Kernel = "rbf"
    gamma: PositiveFloat | None = None
    degree: Degree = 3
    coef0: NonNegativeFloat = 1.0
    map: PositiveInt | None = None
    budget: Annotated[int, NumberRange(1, _MOST_STORED, closed="both")] | None = None
    removal: Removal = "oldest"
    update: Literal["slam", "max_pair"] = "slam"
    margin: NonNegativeFloat = 0.0
    weights: str | None = None

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests run on."""
        return (
            cls(map=32),
            cls("AP", budget=12, kernel="poly", degree=2, margin=1.0, eta=0.25, epochs=2, shuffle=True),
            cls(budget=9, removal="smallest", update="max_pair"),
        )

    # ------------------------------------------------------------------------------------------- configuration

    def _shape(self) -> Vector:
        """The parameters of the kernel."""
        return kernel_shape(self.kernel, self.gamma, self.degree, self.coef0, self.n_features_in_)

    def _space(self) -> KernelPCAMap:
        """The space of the kernel, which the ledger spans by documents when a bound is asked for."""
        _, gamma, degree, coef0 = self._shape().tolist()
        return KernelPCAMap(self.kernel, gamma, int(degree), coef0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.map is not None and self.budget is not None:
            raise self._wrong("budget", "None if map= is given: documents are stored or mapped to random features")
        if self.budget is None and self.kernel != "rbf":
            raise self._wrong("budget", f"an int for kernel={self.kernel!r}: random features exist for kernel='rbf'")
        if self.update == "max_pair" and self.margin != 0:
            raise self._wrong("margin", "0 for update='max_pair'")
        if self.update == "max_pair" and self.weights is not None:
            raise self._wrong("weights", "None for update='max_pair'")
        self._resumed(1.0)

    def _loss(self) -> MaxPair | SLAM:
        if self.update == "max_pair":
            return MaxPair()
        return SLAM.for_measure(self._measure(), self.weights, self.margin)

    def _begin(self, config: OnlineConfig, random: np.random.Generator) -> tuple[Any, Ledger]:
        self.__dict__.pop("map_", None)
        self._shape()
        if self.budget is not None:
            return BudgetState.fresh(int(self.budget), self.n_features_in_), Ledger(config, space=self._space())
        transformer = FourierFeatures(self.gamma, _FEATURES if self.map is None else self.map, random)
        transformer._validate_params()
        self.map_ = transformer._fit_width(self.n_features_in_)
        self.map_.random_state = None  # drawn, and a generator would not be the same after a file
        return State.fresh(self.map_._n_features_out), Ledger(config, space=self.map_)

    def _runner(self, config: OnlineConfig, queries: Queries, state: Any, read: bool) -> RoundRunner:
        if hasattr(self, "map_"):
            return MappedRunner(config, queries, state, read, self.map_)
        return BudgetRunner(config, queries, state, read, self._shape(), self.removal)

    # ------------------------------------------------------------------------------------------- ranking

    def _scores(self, X: checks.Floats) -> Vector:
        scores, state = np.empty(len(X)), self.state_
        if hasattr(self, "map_"):
            for rows in checks.blocks_of_rows(len(X), self.map_._n_features_out):
                scores[rows] = linear_scores(self.map_.transform(X[rows]), state.w, self.n_jobs)
            return scores
        score, shape = mercer.expansion_scores_on(X.dtype), self._shape()
        parts = [(rows.start, rows.stop) for rows in checks.blocks_of_rows(len(X), max(state.stored, 1))]

        def one(first: int, last: int) -> None:
            score(X, first, last, state.documents, state.c, state.stored, shape, scores)

        parallel.map_chunks(one, parts, self.n_jobs)
        return scores

    def _linear_space(self, queries: Queries) -> tuple[Vector | None, Queries, str]:
        if not hasattr(self, "map_"):
            return None, queries, f"{self.name} stores documents and is not linear: {NOT_LINEAR}"
        mapped = queries.map_features(self.map_.transform)
        return self.state_.w, mapped, "bounds are about the mapped features: they are against the best w in that space"

    @property
    def row_radius(self) -> float | None:
        """1, the norm of every mapped row; None with a budget."""
        return FourierFeatures.row_radius if hasattr(self, "map_") else None

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        facts, arrays = pack(self.state_, self.ledger_)
        if hasattr(self, "map_"):
            arrays["frequencies"] = self.map_.frequencies_
        return facts, arrays

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        ledger = unpack_ledger(facts, store, self._resumed(self._step_of(facts)))
        shape, width = self._shape(), self.n_features_in_
        if self.budget is not None:
            state = _read_budget(store, int(self.budget), width)
            self._take(state, replace(ledger, removed=state.removed, space=self._space()), None)
            return
        size = _FEATURES if self.map is None else self.map
        self.map_ = FourierFeatures(self.gamma, size, None)
        self.map_._validate_params()
        self.map_.frequencies_ = store.array("frequencies", np.float64, (size // 2, width))
        self.map_.n_features_in_ = width
        if not np.isfinite(self.map_.frequencies_).all() or not np.isfinite(shape).all():
            raise RankwiseError("its random features are not finite")
        self._take(unpack_state(store, size), replace(ledger, space=self.map_), None)


def _read_budget(store: Store, budget: int, width: int) -> BudgetState:
    """The stored documents in a file; raises an error for values that no run has."""
    shapes = {"documents": (budget, width), "c": (budget,), "born": (budget,), "counts": (3,), "sizes": (2,)}
    state = read_state(store, BudgetState, shapes)
    if state.stored > budget:
        raise RankwiseError(IMPOSSIBLE)
    return state
