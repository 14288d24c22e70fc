"""TreeRanker: trees that LightGBM, XGBoost or CatBoost has grown, as a ranker like any other."""

import codecs
import gzip
import math
import os
import tempfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._arrays import Matrix, Vector
from rankwise._extras import require
from rankwise._files import path_of
from rankwise._parameters import Check
from rankwise._store import Store
from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.io.sources import GZIP, open_file
from rankwise.queries import checks
from rankwise.queries.checks import Floats
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker
from rankwise.rankers._record import Elsewhere
from rankwise.rankers.boosting.catboost_file import read_catboost
from rankwise.rankers.boosting.lightgbm_file import read_lightgbm
from rankwise.rankers.boosting.tree_arrays import TreesOfFile
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from rankwise.rankers.boosting.xgboost_file import read_xgboost

_CBM = b"CBM1"  # the first bytes of CatBoost's binary format


def _are_trees(value: Any) -> bool:
    return isinstance(value, (TreeEnsemble, Elsewhere))


@dataclass(eq=False, repr=False, kw_only=True)
class TreeRanker(Ranker):
    r"""A ranker whose trees were grown by LightGBM, XGBoost or CatBoost, and not here.

    .. math:: s(x) = \frac{1}{n} \sum_t \mathrm{value}_t(\text{leaf of } x \text{ in tree } t) + \text{constant},

    with n the number of trees of LightGBM's random forests, and 1 for all others. :meth:`from_lightgbm`,
    :meth:`from_xgboost` and :meth:`from_catboost` take fitted objects and files, and :func:`rankwise.read_model`
    recognizes files. No booster has to be installed, except for CatBoost's binary files. The ranker then predicts, and
    can be explained, evaluated, compared, certified, saved, served and exported.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure that ``score`` and certificates report.
    trees : TreeEnsemble, default=None
        The trees; None counts the features that are above 0.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Accepted for uniformity; there is no progress to show.
    missing : {"error", "zero", "min", "keep"}, default="keep"
        What to do with NaN in arrays; "keep" leaves it to the trees, as the booster does.

    Attributes
    ----------
    ensemble_ : TreeEnsemble
        The trees.
    feature_importances_ : ndarray of shape (n_features,)
        The share of each feature in the gains of all splits.

    Notes
    -----
    ``fit`` learns nothing. It takes the names of the features from the queries, and raises an error if their number is
    not that of the trees. What the trees were grown on is not known: certificates say so, unless the training queries
    are passed to them.

    **Scores** are those of the booster before it transforms them: ``predict(X, raw_score=True)`` of LightGBM,
    ``predict(X, output_margin=True)`` of XGBoost, ``predict(X, prediction_type="RawFormulaVal")`` of CatBoost. For
    rankers and regressions this is what ``predict`` returns. For classifiers of two classes and for the objectives
    Poisson, gamma, Tweedie and the like, ``predict`` returns an increasing function of it (logistic, exponential),
    which ranks documents the same.

    - LightGBM: the same bits.
    - CatBoost: the same bits; a scale other than 1 (``set_scale_and_bias``) is multiplied into the leaves, so scores
      differ by rounding in float64, at most n_trees 2^-52 times the sum of the largest leaves.
    - XGBoost: every document falls into the same leaves. XGBoost adds their float32 values in float32, and here they
      are added in float64. XGBoost's scores are off by at most (n_trees + 1) 2^-24 times the sum of the largest leaves
      and the base score.

    Values of at most 1e-35 in size count as 0, which XGBoost and CatBoost do not do. Categories are whole numbers from
    0 on, as the booster got them (the codes of a data frame's column). ``best_iteration`` and limits are those of the
    booster's own ``predict``, unless ``rounds=`` is given.

    Examples
    --------
    >>> import lightgbm as lgb
    >>> import numpy as np
    >>> import rankwise as rw
    >>> queries = rw.make_lists(50, random_state=0)
    >>> data = lgb.Dataset(np.asarray(queries.X), queries.y, group=queries.sizes)
    >>> booster = lgb.train({"objective": "lambdarank", "verbosity": -1}, data, 20)
    >>> model = rw.TreeRanker.from_lightgbm(booster)
    >>> bool((model.predict(queries) == booster.predict(np.asarray(queries.X))).all())
    True
    """

    name = "TreeRanker"
    learns = False
    keeps_missing = True

    trees: Annotated[TreeEnsemble | Elsewhere, Check("a sum of trees", _are_trees)] | None = None
    missing: checks.Missing = "keep"

    # ------------------------------------------------------------------------------------------- from boosters

    @classmethod
    def from_lightgbm(
        cls,
        model: Any,
        *,
        rounds: int | None = None,
        feature_names: Sequence[str] | None = None,
        measure: Any = "nDCG@10",
    ) -> Self:
        """The trees of a LightGBM model.

        Parameters
        ----------
        model : lightgbm.Booster, LGBMModel, or path
            A booster, a fitted estimator (``LGBMRanker``, ``LGBMRegressor`` ...), or the file that ``save_model``
            wrote; gzipped files work, too.
        rounds : int, default=None
            The number of boosting rounds to take; None takes those of ``predict``: up to the best iteration.
        feature_names : sequence of str, default=None
            The names of the features; None takes those of the model, if it was given any.
        measure : str or Measure, default="nDCG@10"
            The measure that ``score`` and certificates report.

        Returns
        -------
        TreeRanker
            The fitted ranker.

        Raises
        ------
        FileFormatError
            If the model has several scores per row or linear models in its leaves, or the file is damaged.
        """
        limit = _as_rounds(rounds)
        model = getattr(_fitted(model, "booster_"), "booster_", model)
        if hasattr(model, "model_to_string"):
            # what predict uses, and what save_model writes: all rounds up to the best one
            text = model.model_to_string(num_iteration=limit)
        else:
            text = _text_of(_bytes_of(model, "a LightGBM model"))
        return cls._of(read_lightgbm(text, limit), feature_names, measure)

    @classmethod
    def from_xgboost(
        cls,
        model: Any,
        *,
        rounds: int | None = None,
        feature_names: Sequence[str] | None = None,
        measure: Any = "nDCG@10",
    ) -> Self:
        """The trees of an XGBoost model.

        Parameters
        ----------
        model : xgboost.Booster, XGBModel, or path
            A booster, a fitted estimator (``XGBRanker``, ``XGBRegressor`` ...), or a file (.json or .ubj) that
            ``save_model`` wrote; gzipped files work, too.
        rounds : int, default=None
            The number of boosting rounds to take; None takes those of ``predict``: all of a booster, and of an
            estimator, or of a file that an estimator wrote, those up to the best iteration.
        feature_names : sequence of str, default=None
            The names of the features; None takes those of the model, if it was given any.
        measure : str or Measure, default="nDCG@10"
            The measure that ``score`` and certificates report.

        Returns
        -------
        TreeRanker
            The fitted ranker.

        Raises
        ------
        FileFormatError
            If the model has several scores per row or is linear (gblinear), or the file is damaged.
        """
        limit, missing = _as_rounds(rounds), math.nan
        if hasattr(model, "get_booster"):
            missing = getattr(model, "missing", None)
            missing = math.nan if missing is None else float(missing)
            booster = _fitted(model, "_Booster").get_booster()
            best = getattr(model, "best_iteration", None) if booster.attr("best_iteration") else None
            data = bytes(booster.save_raw("ubj"))
            limit = limit if limit is not None or best is None else int(best) + 1
        elif hasattr(model, "save_raw"):
            data = bytes(model.save_raw("ubj"))
            limit = model.num_boosted_rounds() if limit is None else limit
        else:
            data = _bytes_of(model, "an XGBoost model")
        if not math.isnan(missing) and missing != 0:
            raise RankwiseError(
                f"the XGBoost model counts {missing} as missing: replace it by NaN in the data, and train with the "
                "default missing=nan"
            )
        return cls._of(read_xgboost(data, limit, missing), feature_names, measure)

    @classmethod
    def from_catboost(
        cls,
        model: Any,
        *,
        rounds: int | None = None,
        feature_names: Sequence[str] | None = None,
        measure: Any = "nDCG@10",
    ) -> Self:
        """The trees of a CatBoost model.

        Parameters
        ----------
        model : catboost.CatBoost or path
            A fitted model (``CatBoostRanker``, ``CatBoostRegressor`` ...), or the file that ``save_model(path,
            format="json")`` wrote; gzipped files work, too. Binary files (.cbm) are read by CatBoost.
        rounds : int, default=None
            The number of trees to take; None takes all: CatBoost itself drops those after the best iteration.
        feature_names : sequence of str, default=None
            The names of the features; None takes those of the model, if it was given any.
        measure : str or Measure, default="nDCG@10"
            The measure that ``score`` and certificates report.

        Returns
        -------
        TreeRanker
            The fitted ranker.

        Raises
        ------
        FileFormatError
            If the model has several scores per row, or has features that CatBoost computes itself (statistics of
            categories, of texts and of embeddings), or the file is damaged.
        """
        limit = _as_rounds(rounds)
        if hasattr(model, "save_model"):
            data = _catboost_json(model)
        else:
            data = _bytes_of(model, "a CatBoost model")
            if data.startswith(_CBM):
                data = _opened_by_catboost(data)
        return cls._of(read_catboost(data, limit), feature_names, measure)

    @classmethod
    def _of(cls, found: TreesOfFile, feature_names: Sequence[str] | None, measure: Any) -> Self:
        """A fitted ranker of these trees."""
        try:
            trees = TreeEnsemble.of(found)
        except FileFormatError:
            raise
        except RankwiseError as error:
            raise FileFormatError(f"the model is damaged: {error}") from error
        model = cls(measure, trees=trees)
        model._check_parameters()
        names = checks.as_names(feature_names, trees.n_features) if feature_names is not None else found.names
        model.n_features_in_ = trees.n_features
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
        model.ensemble_ = trees
        model.record_ = model.record_.with_result(model)
        return model

    # ------------------------------------------------------------------------------------------- a ranker

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        if validation is not None:
            raise DataError("TreeRanker does no model selection: omit the validation set")
        trees = _count_positive(self.n_features_in_) if self.trees is None else self.trees
        if isinstance(trees, Elsewhere):
            raise DataError("TreeRanker has no trees to fit with: a file keeps those of fitted rankers alone")
        if trees.n_features != self.n_features_in_:
            raise DataError(f"the trees were grown on {trees.n_features} features, got {self.n_features_in_}")
        self.ensemble_ = trees

    def _scores(self, X: Floats) -> Vector:
        return self.ensemble_.predict(X, self.n_jobs)

    def _contributions(self, X: Floats) -> tuple[Matrix, float] | None:
        found = self.ensemble_.contributions(X, self.n_jobs)
        return found[:, :-1], float(found[0, -1]) if len(found) else 0.0

    @property
    def feature_importances_(self) -> Vector:
        """The share of each feature in the gains of all splits; 0 throughout if there are none."""
        self._check_fitted()
        return self.ensemble_.gain_shares()

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {}, self.ensemble_.arrays()

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self._measure()
        self.ensemble_ = TreeEnsemble.from_arrays(store, self.n_features_in_)
        if isinstance(self.trees, Elsewhere):
            self.trees = self.ensemble_


def _count_positive(width: int) -> TreeEnsemble:
    """A tree for each feature: 1 above 0, else 0."""
    place = np.arange(width)
    return TreeEnsemble.stumps(width, place, np.zeros(width), np.ones(width))


# --------------------------------------------------------------------------------------------------- boosters and files


def _as_rounds(rounds: Any) -> int | None:
    return None if rounds is None else checks.as_whole(rounds, "rounds", 1)


def _fitted(model: Any, attribute: str) -> Any:
    """An estimator for scikit-learn, or an error unless it is fitted."""
    if hasattr(model, "fit") and hasattr(model, "get_params") and getattr(model, attribute, None) is None:
        raise DataError(f"this {type(model).__name__} is not fitted yet: call its fit first")
    return model


def _bytes_of(path: Any, what: str) -> bytes:
    """A whole file, unpacked if it is gzipped."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise RankwiseError(f"{what} must be a fitted object or a path, got {type(path).__name__}")
    name = path_of(path)
    with open_file(name) as file:
        data: bytes = file.read()
    if data.startswith(GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise FileFormatError(f"{name} cannot be unpacked: {error}") from error
    return data.removeprefix(codecs.BOM_UTF8)


def _text_of(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FileFormatError(f"the model is no text in UTF-8 (byte {error.start:,})") from error


def _catboost_json(model: Any) -> bytes:
    """A CatBoost model in its JSON format, which it writes to files alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        _by_catboost(lambda: model.save_model(str(path), format="json"))
        return path.read_bytes()


def _opened_by_catboost(data: bytes) -> bytes:
    """The JSON format of a binary CatBoost file."""
    catboost = require("catboost")
    return _catboost_json(_by_catboost(lambda: catboost.CatBoost().load_model(blob=data)))


def _by_catboost(call: Callable[[], Any]) -> Any:
    """What a call of CatBoost returns; its errors become one sentence."""
    try:
        return call()
    except require("catboost").CatBoostError as error:
        said = str(error).partition("\n")[0].partition(": ")[2] or str(error)
        raise RankwiseError(f"CatBoost cannot read or write this model: {said:.200}") from error
