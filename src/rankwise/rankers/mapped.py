"""`MappedRanker`: any ranker of the package on features that a transformer of scikit-learn makes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankwise._errors import DataError, RankwiseError
from rankwise._kernels.drive import one_blas_thread
from rankwise._store import Store
from rankwise.data import checks
from rankwise.data.queries import Queries
from rankwise.measures._base import Measure, parse
from rankwise.rankers._base import Ranker, registered

if TYPE_CHECKING:
    from rankwise.rankers.certificate.objective import TrainingObjective

Vector = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class MappedRanker(Ranker):
    r"""s(x) = r(z(x)): a transformer maps the features of every document, and a ranker scores the mapped features.

    With random Fourier features, ``Nystroem`` or :class:`~rankwise.KernelPCAMap` as the transformer, a linear ranker
    becomes one with a kernel; splines and bins make it an additive model; ``PolynomialFeatures`` adds products.

    Parameters
    ----------
    transformer : str or object, default="FourierFeatures"
        A transformer that works row by row (a ``Pipeline`` of them, too), or the name of one that this package can
        save. A clone is fitted on the training documents, without their labels.
    ranker : str or Ranker, default="RidgeRanker"
        The ranker on the mapped features, or its name. A clone is fitted.
    measure : str or Measure, default=None
        The measure; None takes that of the ranker, and any other is given to the ranker.
    memory_limit : int, default=None
        Bytes above which the mapped features of the training queries are kept in a temporary file that is mapped into
        memory, in the folder for such files; None is half of the memory that is available. It changes no result.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Accepted for uniformity; the ranker has its own.
    missing : {"error", "zero", "min"}, default="error"
        What to do with NaN in arrays, before documents are mapped.

    Attributes
    ----------
    transformer_ : object
        The fitted transformer.
    ranker_ : Ranker
        The ranker, fitted on mapped features.

    Notes
    -----
    ``fit`` holds X, the mapped X (in memory, or in a file above ``memory_limit``), and a few blocks of 8 MB; what the
    transformer needs for its own ``fit`` comes on top, and X of float32 is copied to float64 for it. ``predict`` maps
    block by block. A row is mapped to the same bits alone and among others.

    A certificate is about the mapped space: its radius is that of the rows z(x). Uniform bounds are given for maps that
    do not depend on the training queries, such as random Fourier features, whose rows have norm 1. A map that was
    fitted on the same queries leaves bounds on a hold-out and on the training queries alone.

    Examples
    --------
    >>> from rankwise import FourierFeatures, RidgeRanker, make_lists
    >>> queries = make_lists(60, documents=8, features=4, random_state=1)
    >>> model = MappedRanker(FourierFeatures(gamma=0.1, n_features=32), RidgeRanker(alpha=1.0)).fit(queries)
    >>> model.mapped(queries).n_features
    32
    """

    name = "MappedRanker"

    transformer: Any = field(default="FourierFeatures", kw_only=False)
    ranker: Any = field(default="RidgeRanker", kw_only=False)
    measure: Any = field(default=None, kw_only=True)
    memory_limit: int | None = None

    transformer_ = property(lambda self: self.map_.transformer)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests run on."""
        return (cls(), cls("StandardScaler", "RankBoost"), cls("KernelPCAMap", "SLAMPerceptron", measure="AP"))

    @property
    def takes_validation(self) -> bool:  # type: ignore[override]
        """Whether ``fit`` uses a validation set: if the ranker does."""
        return self._given_ranker().takes_validation

    @property
    def takes_document_weights(self) -> bool:  # type: ignore[override]
        """Whether ``fit`` uses document weights: if the ranker does."""
        return self._given_ranker().takes_document_weights

    def _why_unweighted(self) -> str:
        return self._given_ranker()._why_unweighted()

    def _learns_from_validation(self) -> bool:
        return self._given_ranker()._learns_from_validation()

    def _measure(self) -> Measure:
        return parse(self._given_ranker().measure if self.measure is None else self.measure)

    @property
    def row_radius(self) -> float | None:
        """A norm that no mapped row exceeds, whatever the document; None if none is known."""
        return self.map_.row_radius if hasattr(self, "map_") else None

    # ------------------------------------------------------------------------------------------- learning

    def _given_ranker(self) -> Ranker:
        """The ranker as it was given, made if it was given by name."""
        given = self.ranker
        if isinstance(given, str):
            kind = registered().get(given)
            if kind is None:
                raise RankwiseError(f"a ranker given by name is one of {', '.join(registered())}: found {given!r:.60}")
            given = kind()
        if not isinstance(given, Ranker):
            raise RankwiseError(f"ranker is a ranker of this package, or its name: found {given!r:.60}")
        if given.scores_by_query:
            raise RankwiseError(f"{given.name} scores within queries, and {self.name} maps documents: use it alone")
        return given

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        from rankwise.features.row_map import RowMap

        self._measure()
        if self.memory_limit is not None:
            checks.as_whole(self.memory_limit, "memory_limit")
        ranker = clone(self._given_ranker())
        if self.measure is not None:
            ranker.set_params(measure=self.measure)
        if ranker.n_jobs is None:
            ranker.set_params(n_jobs=self.n_jobs)
        if validation is not None and not ranker.takes_validation:
            raise DataError(f"{ranker.name} does no model selection: leave out the validation set")
        self.map_ = RowMap.fitted(self.transformer, queries)
        held = None if validation is None else self.mapped(validation)
        self.ranker_ = ranker.fit(self.mapped(queries), validation=held)

    def mapped(self, queries: Queries) -> Queries:
        """The queries with mapped features, which ``ranker_`` was fitted on and scores.

        Parameters
        ----------
        queries : Queries
            Queries with the features that ``fit`` saw.

        Returns
        -------
        Queries
            The same queries; above ``memory_limit`` their features are in a temporary file.
        """
        if not hasattr(self, "map_"):
            self._check_fitted()
        return self.map_.queries(self._aligned(queries), self.memory_limit)

    # ------------------------------------------------------------------------------------------- ranking

    def _scores(self, X: checks.Floats) -> Vector:
        scores = np.empty(len(X))
        for rows, block in self.map_.blocks(X):
            scores[rows] = self.ranker_._scores(block)
        return scores

    # ------------------------------------------------------------------------------------------- what is guaranteed

    def _training_objective(self) -> "TrainingObjective | None":
        inner: Ranker = self.ranker_
        return inner._training_objective()

    def _linear_space(self, queries: Queries) -> tuple[Vector | None, Queries, str]:
        coef, mapped, note = self.ranker_._linear_space(self.mapped(queries))
        if coef is not None and not self.map_.fixed:
            about = type(self.transformer_).__name__
            return None, queries, f"no uniform bound: {about} was fitted on the training queries themselves"
        return coef, mapped, note if coef is None else "bounds for linear weights are about the mapped features"

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        from rankwise.features.stored import Packed
        from rankwise.rankers._persist import nested_state

        packed = Packed()
        made = packed.pack(self.transformer_, f"{self.name} with this transformer")
        facts, arrays = nested_state([self.ranker_])
        arrays |= {f"map.{name}": array for name, array in packed.arrays.items()}
        return {"transformer": made, "width": self.map_.width, "ranker": facts}, arrays

    def _frozen_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        from rankwise.features.stored import NotStorableError, Packed

        facts, arrays = self.ranker_._frozen_state()
        packed = Packed()
        try:
            made = packed.pack(self.transformer_, self.name)
        except NotStorableError:  # it learns, and cannot be saved
            import joblib

            made = joblib.hash(self.transformer_)
        coef = {"coef": self.ranker_.coef_} if hasattr(self.ranker_, "coef_") else {}
        return {"transformer": made, "ranker": facts}, {**arrays, **coef, **packed.arrays}

    @one_blas_thread()
    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        from rankwise.features.row_map import RowMap
        from rankwise.features.stored import unpacked
        from rankwise.rankers._persist import read_nested

        self._measure()
        inside = store.part("map.", {})
        arrays = {name: inside.array(name) for name in inside.places}
        transformer = unpacked(facts["transformer"], arrays)
        if not hasattr(transformer, "transform") or getattr(transformer, "n_features_in_", None) != self.n_features_in_:
            raise RankwiseError("its transformer is not fitted on its features")
        self.map_ = RowMap.of(transformer, np.zeros((1, self.n_features_in_)))
        if facts["width"] != self.map_.width:
            raise RankwiseError(f"its transformer makes {self.map_.width:,} features, and not {facts['width']!r:.40}")
        (self.ranker_,) = read_nested(store, facts["ranker"], self.map_.width)
        if self.ranker_.scores_by_query:
            raise RankwiseError("its ranker scores within queries")
