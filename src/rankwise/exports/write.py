"""Write a fitted ranker for a search engine, a database or a program, with evidence that it ranks the same."""

import difflib
import math
import os
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np

from rankwise._parameters import validated
from rankwise.errors import DataError, RankwiseError
from rankwise.exports._base import MOST_TREES, Cut, Export, Target, Written, targets
from rankwise.exports.columns import ColumnFeatures, not_held, rows_of_columns
from rankwise.exports.curves import CurveSum
from rankwise.exports.formula import Formula, FusionFormula, StepSum, TreeSum, WeightedSum
from rankwise.exports.map_sums import MapSum
from rankwise.exports.maps import formula_of_map
from rankwise.exports.networks import NetworkSum
from rankwise.exports.normal_scores import curves_of_normal_scores
from rankwise.exports.parity import parity_of
from rankwise.features.builder import FeatureBuilder
from rankwise.features.table import as_table
from rankwise.guarantees.cutoff import Cutoff
from rankwise.measures._base import Vector
from rankwise.queries import checks
from rankwise.queries.queries import Queries
from rankwise.queries.scaling import Scaler
from rankwise.rankers._base import LinearRanker, Ranker
from rankwise.rankers._inputs import align, apply_builder
from rankwise.rankers._record import digest_of_scores
from rankwise.rankers.boosting.steps import ThresholdRanker
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from rankwise.rankers.fusion.hybrid_ranker import HybridRanker
from rankwise.rankers.model_files import instead_of
from rankwise.rankers.neural.neural_ranker import NeuralRanker

Scaling = Scaler | Literal["none"] | None
AnyFormula = Formula | MapSum | FusionFormula


@validated
def export(
    model: Any,
    to: str | Target,
    path: str | os.PathLike[str] | None = None,
    *,
    called: str = "rankwise",
    sample: Queries | None = None,
    feature_names: Sequence[str] | None = None,
    scaling: Scaling = None,
    features: Literal["raw", "built"] = "raw",
    shift: float | Literal["sample"] = 0.0,
    cutoff: Cutoff | None = None,
    **options: Any,
) -> Export:
    """Write a fitted ranker for an engine or a language.

    Parameters
    ----------
    model : Ranker or Pipeline
        A fitted ranker, or scikit-learn's pipeline of a :class:`~rankwise.FeatureBuilder` or a
        :class:`~rankwise.Scaler` and a ranker.
    to : str or Target
        "ranklib", "solr", "elasticsearch", "opensearch", "vespa", "onnx", "sql", "python" or "c"; for a
        :class:`~rankwise.HybridRanker` "opensearch-hybrid", "elasticsearch-hybrid", "vespa-hybrid" or "solr-hybrid"; or
        a target with its options.
    path : str or path-like, default=None
        Where to write at once; otherwise use :meth:`Export.write`.
    called : str, default="rankwise"
        The name of the model in the engine, of the function or of the column; a name that the language or the engine
        uses for something else raises a clear error.
    sample : Queries or data frame, default=None
        Queries with raw features, on which the engine's arithmetic is compared with the ranker's; a table, if the
        ranker takes one.
    feature_names : sequence of str, default=None
        The names of the features in the engine, or of the columns where it makes the features of them; None takes
        those of the ranker, or f1, f2, ...
    scaling : Scaler or "none", default=None
        The fitted :class:`~rankwise.Scaler` through which the ranker sees raw features; "none" where the engine gets
        features that are scaled already; None takes what the ranker or the sample says.
    features : {"raw", "built"}, default="raw"
        What the engine gets, if the ranker learned from features of a :class:`~rankwise.FeatureBuilder`: the columns of
        the table, of which SQL, Python, C, Vespa and ONNX make the features themselves; or the features that the
        builder makes.
    shift : float or "sample", default=0.0
        A constant added to every score; "sample" takes as much as lifts every score of the sample to 0 or above.
    cutoff : Cutoff, default=None
        The cut-off of this ranker (:func:`rankwise.cutoff`): SQL, Elasticsearch and OpenSearch get a file that cuts
        lists so, and a note says what to do for the others. The threshold is that of the engine's scores.
    **options : dict
        Options of the target, such as ``store=`` for Solr.

    Returns
    -------
    Export
        Files, notes and parity.

    Raises
    ------
    RankwiseError
        If the target is unknown, or cannot express the ranker.

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.make_lists(20, features=3, random_state=0)
    >>> model = rw.RidgeRanker(alpha=1.0).fit(lists)
    >>> done = export(model, "ranklib", feature_names=["bm25", "age", "clicks"], sample=lists)
    >>> print(done.text.splitlines()[0])
    ## Coordinate Ascent
    >>> done.parity.same_order
    True
    """
    target = _target(to, options)
    if not called.strip() or not called.isprintable():
        raise RankwiseError(f"called must be a printable string, the name of the model, got {called!r:.60}")
    ranker, scaler = open_model(model, scaling, sample if isinstance(sample, Queries) else None)
    columns = _columns(ranker, features, target, feature_names)
    rows = None
    if sample is not None and columns is not None:
        sample, rows = _with_columns(ranker, sample)
    elif sample is not None:
        sample = apply_builder(ranker, sample, grouped=True, judged=True, scaled=False)
    if sample is not None and scaler is not None and sample.scaling is not None:
        raise DataError(
            f"the sample was scaled by {sample.scaling!r}: pass the raw queries and scaling= that scaler, because "
            "an engine sees raw features; or scaling='none' if it gets them scaled"
        )
    formula, notes = formula_of(ranker, scaler, feature_names if columns is None else None)
    formula = _express(formula, target, ranker)
    notes += _other_rules(formula, target) + _gaps(formula, target)
    builder = ranker.record_.builder
    if builder is not None and features == "raw" and columns is None and builder.missing != "keep":
        notes.append(
            "the ranker fills a missing number with the median of training, and this file does not: give no gaps"
        )
    own = None
    if sample is not None:
        sample = align(ranker, sample, scaled=False)
        own = ranker.predict(sample if scaler is None else scaler.transform(sample))
    # a shift moves all scores alike and changes no ranking; Lucene rejects scores below 0
    lifted = _shift(shift, own)
    if lifted and isinstance(formula, FusionFormula):
        raise RankwiseError(f"{target.title} cannot add a constant to scores: remove shift=")
    formula = replace(formula, constant=formula.constant + lifted)
    writes: Any = target.write  # columns are an argument of targets that hold them
    written: Written = writes(formula, called) if columns is None else writes(formula, called, columns)
    notes += [] if columns is None else columns.notes
    if lifted and written.dropped:
        raise RankwiseError(f"{target.title} cannot hold a shift in this form: choose another form, or remove shift=")
    cut = None if cutoff is None else _cut(cutoff, ranker, called, target, lifted - written.dropped)
    parity = None
    if sample is not None and own is not None:
        # computed from the written files: the check covers the writer, too
        if rows is not None and columns is not None:
            scores = target.score(written.files, rows, columns.names) if len(rows) else np.empty(0)
        else:
            scores = _score(target, written, sample, formula)
        arithmetic = written.arithmetic or target.arithmetic
        parity = parity_of(sample, own + lifted, scores, ranker._measure(), arithmetic, written.dropped)
    beside = Written({}) if cut is None else target.write_cut(cut, written)
    files, said = {**written.files, **beside.files}, (*written.notes, *beside.notes, *notes)
    done = Export(target.name, files, said, parity, written.dropped, written.requests)
    if path is not None:
        done.write(path)
    return done


def _cut(cutoff: Cutoff, ranker: Ranker, called: str, target: Target, added: float) -> Cut | None:
    """The cut-off for an engine whose scores are those of the ranker and a constant; None if it keeps everything."""
    cutoff.refuse_other_model(digest_of_scores(ranker), ranker.name)
    if cutoff.by == "rank":
        return None if math.isinf(cutoff.value) else Cut(called, documents=int(cutoff.value))
    if cutoff.by == "standardized":
        raise RankwiseError(
            f"{target.title} compares scores, and this cut-off is on scores standardized within their query: calibrate "
            "one with by='score' or by='rank'"
        )
    return None if cutoff.value == -math.inf else Cut(called, score=cutoff.value + added)


def _express(formula: AnyFormula, target: Target, ranker: Ranker) -> AnyFormula:
    """The formula in a form that the target takes."""
    if isinstance(formula, WeightedSum) and formula.fill is not None and _takes(target, CurveSum):
        return formula.as_curves()
    if isinstance(formula, TreeSum):
        _check_trees(formula, target, ranker)
    if isinstance(formula, target.takes):
        return formula
    able = _able(type(formula))
    if isinstance(formula, FusionFormula):
        plain = formula.as_weighted_sum
        if plain is not None:
            return plain
        raise RankwiseError(
            f"{target.title} scores a document without seeing its query, and {ranker.name} normalizes scores within "
            f"each query: export to {able}, or fit with normalizer='none'"
        )
    if FusionFormula not in target.takes and isinstance(formula, MapSum):
        raise RankwiseError(
            f"{target.title} holds a weighted sum of features or a sum of steps, and {ranker.name} is "
            f"{formula.about}: export to {able}"
        )
    raise RankwiseError(f"{target.title} requires a HybridRanker, got {ranker.name}")


def _takes(target: Target | type[Target], formula: type) -> bool:
    """Whether a target takes formulas of this type."""
    return issubclass(formula, target.takes)


def _able(formula: type) -> str:
    """The targets that take formulas of this type."""
    return ", ".join(sorted(name for name, kind in targets().items() if _takes(kind, formula)))


def _check_trees(formula: TreeSum, target: Target, ranker: Ranker) -> None:
    """Raise an error for trees that are too many, or have beside them what the target cannot hold."""
    if formula.curves is not None and _takes(target, TreeSum) and not _takes(target, CurveSum):
        raise RankwiseError(
            f"{target.title} holds trees and nothing beside them, and {ranker.name} adds linear scores: fit without "
            f"these (AutoRanker with members=('trees',)), or export to {_able(CurveSum)}"
        )
    if formula.trees.n_trees > MOST_TREES and _takes(target, TreeSum) and not target.holds_tables:
        tables = ", ".join(sorted(name for name, kind in targets().items() if kind.holds_tables))
        raise RankwiseError(
            f"{target.title} reads nested text, of which {MOST_TREES:,} trees are the most, and {ranker.name} has "
            f"{formula.trees.n_trees:,}: fit fewer (AutoRanker with compact=True has a fifth), or export to {tables}"
        )


def _gaps(formula: AnyFormula, target: Target) -> list[str]:
    """A note where an engine counts a missing value as 0, and the ranker does not."""
    if not isinstance(formula, WeightedSum) or formula.fill is None:
        return []
    return [
        f"the ranker counts a missing value as the median of training (model.ensemble_.fill), and {target.title} as 0 "
        "unless the feature has a default: the drafts of features for Solr and the plugins have the medians"
    ]


def _other_rules(formula: AnyFormula, target: Target) -> list[str]:
    """A note where weights were learned by other rules than those of the engine."""
    engine = target.name.removesuffix("-hybrid")
    if not isinstance(formula, FusionFormula) or formula.fusion.engine == engine:
        return []
    return [
        f"the weights were learned by the rules of {formula.fusion.engine or 'the textbook'}, which differ for equal "
        f"scores and for documents that a sub-query did not return: fit with engine={engine!r}"
    ]


def _score(target: Target, written: Written, sample: Queries, formula: AnyFormula) -> Vector:
    """The scores of the engine; one query after the other where it normalizes within queries."""
    if not isinstance(formula, FusionFormula):
        return target.score(written.files, sample.X, formula.names)
    scores = np.empty(sample.n_documents)
    for query in range(len(sample)):
        rows = sample.rows_of(query)
        scores[rows] = target.score(written.files, sample.X[rows], formula.names)
    return scores


def _columns(
    ranker: Ranker, features: str, target: Target, feature_names: Sequence[str] | None
) -> ColumnFeatures | None:
    """The builder as a part of the file; None where the engine gets what the ranker learned from."""
    builder = ranker.record_.builder
    if builder is None or features == "built":
        return None
    lacking = not_held(builder, target.holds_columns)
    if lacking:
        able = [] if not_held(builder, columns=True) else sorted(n for n, one in targets().items() if one.holds_columns)
        instead = f"export to {', '.join(able)}, which can; or " if able else ""
        count = len(builder.feature_names_out_)
        raise RankwiseError(
            f"{target.title} cannot hold what the FeatureBuilder of {ranker.name} makes of {', '.join(lacking)}: "
            f"{instead}pass features='built' (--features built in the shell) if the engine gets the {count} features "
            "of model.features_.transform"
        )
    columns = ColumnFeatures.of(builder, feature_names) if target.holds_columns else None
    return None if columns is None or columns.is_trivial else columns


def _with_columns(ranker: Ranker, sample: Any) -> tuple[Queries, Any]:
    """The features of a raw table, and its columns as the engine gets them, row by row."""
    if isinstance(sample, Queries) and (sample.built_by is not None or sample.feature_names is None):
        raise DataError(
            "sample must be the raw table, because the file makes features of its columns, got queries with features: "
            "pass the table, or features='built'"
        )
    builder = ranker.features_.as_fitted()
    if builder.unjudged == "drop":
        builder.unjudged = "zero"  # rows stay, for scores are compared and not labels
    table = as_table(sample)
    return builder._transform(table), rows_of_columns(builder, table)


def _target(to: str | Target, options: dict[str, Any]) -> Target:
    """The target, with its options checked."""
    if isinstance(to, Target):
        return replace(to, **options) if options else to
    kind = targets().get(str(to).lower())
    if kind is None:
        near = difflib.get_close_matches(str(to).lower(), targets(), n=1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise RankwiseError(
            f"to must be the name of an export target, got {to!r:.40}: there are {', '.join(sorted(targets()))}{meant}"
        )
    # options of a target are the fields of its dataclass
    known = [one.name for one in fields(kind)]
    for name in options:
        if name not in known:
            takes = f"takes {', '.join(known)}" if known else "takes no options"
            raise RankwiseError(f"an export to {kind.name} has no option {name!r:.40}: it {takes}")
    return kind(**options)


def _shift(shift: Any, scores: Any) -> float:
    """The constant to add."""
    if shift != "sample":
        return float(shift)
    if scores is None:
        raise RankwiseError("shift='sample' makes the scores of a sample positive: pass sample=")
    return max(0.0, -float(scores.min(initial=0.0)))


# ------------------------------------------------------------------------------------------ what the ranker computes


def formula_of(
    ranker: Ranker, scaler: Scaler | None, feature_names: Sequence[str] | None
) -> tuple[AnyFormula, list[str]]:
    """What a fitted ranker computes on raw features.

    Parameters
    ----------
    ranker : Ranker
        The fitted ranker.
    scaler : Scaler or None
        The scaler through which it sees raw features.
    feature_names : sequence of str or None
        The names of the features in the engine.

    Returns
    -------
    formula : WeightedSum, StepSum, TreeSum, MapSum or FusionFormula
        The formula.
    notes : list of str
        Notes about names and missing values.

    Raises
    ------
    RankwiseError
        If the ranker is neither a weighted sum nor a sum of steps or trees, nor linear weights on a map, nor a network.
    """
    names, notes = _names(ranker, feature_names)
    ranker = ranker._scoring_model()  # a committee of linear rankers is a linear ranker
    if ranker.missing == "min":
        notes.append(
            "the ranker fills missing values with the smallest of their query (missing='min'), which no engine does: "
            "send complete features"
        )
    trees = getattr(ranker, "ensemble_", None)
    found: WeightedSum | StepSum | TreeSum | CurveSum | NetworkSum
    if isinstance(ranker, LinearRanker):
        constant = float(getattr(ranker, "intercept_", 0.0))
        if scaler is not None and scaler.how == "normal":
            weights = ranker.coef_.astype(np.float64)
            return curves_of_normal_scores(weights, scaler, names, constant, ranker.missing), notes
        found = WeightedSum(names, ranker.coef_.astype(np.float64), constant, missing=ranker.missing)
    elif isinstance(ranker, ThresholdRanker):
        steps = ranker.steps_
        feature, threshold = steps["feature"].astype(np.int64), steps["threshold"].copy()
        found = StepSum(names, feature, threshold, steps["alpha"].copy(), missing=ranker.missing)
    elif isinstance(trees, TreeEnsemble):
        found = _of_ensemble(trees, names, ranker.missing)
    elif isinstance(ranker, NeuralRanker):
        found = NetworkSum(names, 0.0, ranker.missing, ranker.network_)
    elif isinstance(ranker, HybridRanker):
        if scaler is not None:
            raise RankwiseError(f"{ranker.name} normalizes scores itself: fit it on raw scores, without a Scaler")
        return FusionFormula(names, ranker.weights_, ranker._fusion()), notes
    else:
        return formula_of_map(ranker, names, scaler), notes
    return (found if scaler is None else found.scale_by(scaler)), notes


def _of_ensemble(
    trees: TreeEnsemble, names: tuple[str, ...], missing: checks.Missing
) -> WeightedSum | CurveSum | TreeSum:
    """The formula of an ensemble; the simpler one where there are no trees."""
    trees = trees.as_sum
    found = TreeSum.of(trees, names, missing)
    if trees.n_trees or (trees.coef is None and trees.normal is None):
        return found
    if trees.normal is None or found.curves is None:
        fill = trees.fill if missing == "keep" else None
        return WeightedSum(names, np.asarray(trees.coef), trees.offset, missing=missing, fill=fill)
    return replace(found.curves, constant=found.curves.constant + found.constant)


def open_model(model: Any, scaling: Scaling = None, sample: Queries | None = None) -> tuple[Ranker, Scaler | None]:
    """Find the fitted ranker, and the scaler through which it sees raw features.

    Parameters
    ----------
    model : Ranker or Pipeline
        A fitted ranker, or scikit-learn's pipeline of a scaler and a ranker.
    scaling : Scaler or "none", default=None
        The scaler, or "none" where the engine gets scaled features; None takes what the ranker or the sample says.
    sample : Queries, default=None
        A sample, which may know its scaler.

    Returns
    -------
    ranker : Ranker
        The ranker.
    scaler : Scaler or None
        The scaler.

    Raises
    ------
    RankwiseError
        If the scaling is one that no engine can apply.
    """
    scaler: Any = scaling
    if hasattr(model, "steps") and not isinstance(model, Ranker):  # a pipeline of scikit-learn's
        *before, (_, ranker) = model.steps
        if before and isinstance(before[0][1], FeatureBuilder):  # which the ranker knows
            before = before[1:]
            if not before and isinstance(ranker, Ranker):
                return open_model(ranker, scaling, sample)
        if len(before) != 1 or not isinstance(before[0][1], Scaler) or not isinstance(ranker, Ranker):
            raise RankwiseError("a pipeline must consist of a Scaler and a ranker to be exported, got other steps")
        scaler, model = before[0][1] if scaling is None else scaling, ranker
    if not isinstance(model, Ranker):
        raise RankwiseError(f"export requires a fitted ranker, got {type(model).__name__}{instead_of(model)}")
    model._check_fitted()
    if scaler is None:
        scaler = model.record_.scaler or (None if sample is None else sample.scaling)
    if scaler is None or (isinstance(scaler, str) and scaler == "none"):
        return model, None
    if not isinstance(scaler, Scaler):
        raise RankwiseError(f"scaling must be a fitted Scaler or 'none', got {scaler!r:.60}")
    if scaler.per == "query":
        raise RankwiseError(
            f"{model.name} learned from features scaled within each query, and an engine scores a document without "
            "seeing its query: learn from Scaler(per='set') or raw features, or pass scaling='none' if the engine "
            "gets features that are scaled already"
        )
    scaler._check_fitted()
    if scaler.n_features_in_ != model.n_features_in_:
        raise DataError(
            f"the scaler must have the features of {model.name} ({model.n_features_in_}), got {scaler.n_features_in_}"
        )
    return model, scaler


def _names(ranker: Ranker, given: Sequence[str] | None) -> tuple[tuple[str, ...], list[str]]:
    """The names of the features in the engine, and a note where they are made up."""
    names = checks.as_names(given, ranker.n_features_in_) if given is not None else ranker._names()
    if names is not None:
        for name in names:
            if not name.strip() or not name.isprintable():
                raise DataError(f"the feature name {name!r:.60} cannot be exported: names are printable and not empty")
        return names, []
    count = ranker.n_features_in_
    return tuple(f"f{place}" for place in range(1, count + 1)), [
        f"the ranker knows no names of features: they are called f1 to f{count}; give feature_names="
    ]
