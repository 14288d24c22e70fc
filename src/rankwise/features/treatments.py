"""Make features of one column: scikit-learn's transformers, fitted on the training table, and how they follow
each other.

A number is read, filled (:class:`sklearn.impute.SimpleImputer`), bent (log), scaled, and put into relation to its query
if asked. A category is encoded. The transformers of the user take the place of everything but reading and filling.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import DataError, in_one_line
from rankwise.features.codec import storable
from rankwise.features.columns import Decision, read_levels, read_numbers, read_values
from rankwise.features.per_query import within_queries
from rankwise.features.table import Column, RawTable
from rankwise.queries.checks import plural

if TYPE_CHECKING:
    from rankwise.features.builder import FeatureBuilder

Array = NDArray[np.float64]
Layout = tuple[NDArray[np.int64], NDArray[np.int64] | None]  # start and rows of the queries
_SCALERS = {"standard": "StandardScaler", "minmax": "MinMaxScaler", "robust": "RobustScaler"}
_QUANTILES = 1000
_MISSING, _OTHER = "(missing)", "(other)"


@dataclass(frozen=True)
class Treatment:
    """Fitted transformers of one column, or of several together.

    Attributes
    ----------
    columns : tuple of str
        The columns that are read.
    kind : {"number", "boolean", "date", "amount", "category", "numbers", "texts"}
        How they are read; the last two for a transformer of the user.
    reading : dict
        How texts are read, see :class:`rankwise.features.columns.Decision`; ``latest`` is the day from which the age of
        dates counts.
    features : tuple of str
        The features that are made.
    words : str
        The treatment in words.
    log : bool
        Whether numbers become sign(x) log(1 + abs(x)).
    within : tuple of str
        Transformations within queries that replace a number.
    steps : dict of str to transformer
        Fitted transformers of scikit-learn: ``fill``, ``scale``, ``encode``, ``own``.
    """

    columns: tuple[str, ...]
    kind: str
    reading: dict[str, Any]
    features: tuple[str, ...]
    words: str
    log: bool = False
    within: tuple[str, ...] = ()
    steps: dict[str, Any] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Whether the only feature is the column itself, apart from values for gaps."""
        return self.features == self.columns

    @property
    def needs_queries(self) -> bool:
        """Whether a feature depends on the other documents of the query."""
        return any(how != "value" for how in self.within)

    def apply(self, table: RawTable, layout: Layout) -> Array:
        """The features of a table.

        Parameters
        ----------
        table : RawTable
            A table with the columns.
        layout : tuple of ndarray
            The start and the rows of its queries.

        Returns
        -------
        X : ndarray of float64, shape (n_rows, n_features)
            The features.
        """
        if not table.n_rows:  # which scikit-learn refuses
            return np.empty((0, len(self.features)))
        if self.kind == "category":
            return self._encode(read_levels(table.column(self.columns[0])))
        if self.kind == "texts":
            texts = np.column_stack([read_levels(table.column(name)) for name in self.columns])
            return self._own(texts)
        if self.kind == "numbers":
            numbers = [read_numbers(table.column(name), "number", self.reading.get(name, {})) for name in self.columns]
            return self._own(self._fill(np.column_stack(numbers)))
        return self._number(table.column(self.columns[0]), layout)

    def _number(self, column: Column, layout: Layout) -> Array:
        values, units = read_values(column, self.kind, self.reading)
        if self.kind == "date":
            values = self.reading["latest"] - values
        filled = self._fill(values[:, None])
        main, blocks = filled[:, :1], []
        if self.log:
            main = np.copysign(np.log1p(np.abs(main)), main)
        if "scale" in self.steps:
            main = dense(self.steps["scale"].transform(main))
        for how in self.within or ("value",):
            blocks.append(main if how == "value" else within_queries(main[:, 0], *layout, how)[:, None])
        blocks.append(filled[:, 1:])
        if units is not None and "encode" in self.steps:
            blocks.append(self._encode(units))
        return np.concatenate(blocks, axis=1)

    def _fill(self, values: Array) -> Array:
        return dense(self.steps["fill"].transform(values)) if "fill" in self.steps else values

    def _encode(self, levels: NDArray[np.object_]) -> Array:
        return dense(self.steps["encode"].transform(levels[:, None]))

    def _own(self, values: NDArray[Any]) -> Array:
        own = self.steps["own"]
        try:
            return dense(own.transform(values))
        except Exception as error:  # a transformer of the user may raise anything
            raise DataError(f"{_describe(own, self.columns)} failed: {in_one_line(error)}") from error


def dense(found: Any) -> Array:
    """The result of a transformer as a matrix of float64."""
    if hasattr(found, "toarray"):
        found = found.toarray()
    array = np.asarray(found, dtype=np.float64)
    return array[:, None] if array.ndim == 1 else array


# --------------------------------------------------------------------------------------------------------- learning


def treat(
    decision: Decision, table: RawTable, settings: "FeatureBuilder", within: Sequence[str], layout: Layout
) -> Treatment:
    """Learn what makes features of a column.

    Parameters
    ----------
    decision : Decision
        What is done with the column.
    table : RawTable
        The training table.
    settings : FeatureBuilder
        How kinds are treated.
    within : sequence of str
        Transformations within queries.
    layout : tuple of ndarray
        The start and the rows of the queries.

    Returns
    -------
    treatment : Treatment
        The fitted treatment.
    """
    column = table.column(decision.name)
    if decision.kind == "category":
        return _category(decision, column, settings)
    reading = dict(decision.reading)
    values, units = read_values(column, decision.kind, reading)
    if decision.kind == "date":
        reading["latest"] = float(np.nanmax(values))
        values = reading["latest"] - values
    return _number(decision, values, units, reading, settings, tuple(within))


def _number(
    decision: Decision,
    values: Array,
    units: Any,
    reading: dict[str, Any],
    settings: "FeatureBuilder",
    within: tuple[str, ...],
) -> Treatment:
    """A number, a truth value, an age or an amount."""
    name, kind = decision.name, decision.kind
    base, words, steps = name, [], {}
    if kind == "date":
        base = f"{name}_age_days"
        words.append(f"age in days on {date(1970, 1, 1) + timedelta(days=int(reading['latest'] // 1))}")
    elif kind == "amount":
        base = f"{name}_amount"
        words.append("number without its unit")
    main, gaps = values[:, None], int(np.isnan(values).sum())
    keep = settings.missing == "keep"
    if not keep:
        strategy = "most_frequent" if kind == "boolean" else "median"
        steps["fill"] = storable("SimpleImputer")(
            strategy=strategy, add_indicator=bool(gaps), keep_empty_features=True
        ).fit(main)
        main = steps["fill"].transform(main)[:, :1]
    log = decision.heavy and settings.heavy_tails == "log"
    scaling = settings.numbers if kind != "boolean" else "keep"
    if decision.heavy and settings.heavy_tails == "quantile":
        scaling = "quantile"
    if log:
        main = np.copysign(np.log1p(np.abs(main)), main)
        base += "_log"
        words.append("sign(x) log(1 + |x|)")
    if scaling != "keep":
        steps["scale"] = _scaler(scaling, len(main)).fit(main)
        base += f"_{scaling}"
        words.append(f"scaled ({scaling})" if scaling != "quantile" else "place among the training values")
    names = [base if how == "value" else f"{base}_{how}" for how in within] or [base]
    words.extend(f"{how} within the query" for how in within if how != "value")
    if gaps and not keep:
        names.append(f"{name}_missing")
        words.append(f"{'most frequent value' if kind == 'boolean' else 'median'} for gaps, and an indicator")
    elif gaps:
        words.append("gaps left as NaN")
    made = Treatment((name,), kind, reading, tuple(names), "; ".join(words) or "as it is", log, within, steps)
    if kind == "amount" and len(reading["units"]) > 1:
        encoded = _category(Decision(f"{name}_unit", "category", ""), Column(f"{name}_unit", "text", units), settings)
        steps["encode"] = encoded.steps["encode"]
        made = replace(made, features=(*names, *encoded.features), words=f"{made.words}; unit {encoded.words}")
    return made


def _category(decision: Decision, column: Column, settings: "FeatureBuilder") -> Treatment:
    """A category, by its encoder."""
    name, levels = decision.name, read_levels(column)[:, None]
    if settings.categories == "ordinal":
        encoder = storable("OrdinalEncoder")(
            handle_unknown="use_encoded_value", unknown_value=-1, min_frequency=settings.rare
        ).fit(levels)
        return Treatment(
            (name,), "category", {}, (f"{name}_code",), "number of its level, -1 if unseen", steps={"encode": encoder}
        )
    encoder = storable("OneHotEncoder")(
        handle_unknown="infrequent_if_exist", min_frequency=settings.rare, sparse_output=False
    ).fit(levels)
    rare = encoder.infrequent_categories_[0] if settings.rare is not None else None
    rare = set() if rare is None else set(rare.tolist())
    shown = [level or _MISSING for level in encoder.categories_[0].tolist() if level not in rare]
    words = f"one-hot, {plural(len(shown), 'level')}"
    if rare:
        shown.append(_OTHER)
        words += f" and {plural(len(rare), 'rare one')} together with unseen ones"
    else:
        words += ", all 0 for unseen ones"
    names = tuple(f"{name}={level}" for level in shown)
    return Treatment((name,), "category", {}, names, words, steps={"encode": encoder})


def treat_by(transformer: Any, decisions: Sequence[Decision], table: RawTable) -> Treatment:
    """Learn the features that a transformer of the user makes of columns.

    Parameters
    ----------
    transformer : transformer
        Any transformer of scikit-learn's protocol; a clone of it is fitted.
    decisions : sequence of Decision
        The columns: all read as numbers, or all as texts.
    table : RawTable
        The training table.

    Returns
    -------
    treatment : Treatment
        The fitted treatment.
    """
    from sklearn.base import clone

    names = tuple(decision.name for decision in decisions)
    numeric = [one.kind in ("number", "boolean") or table.column(one.name).stored == "number" for one in decisions]
    if any(numeric) and not all(numeric):
        raise DataError(f"{_describe(transformer, names)} gets numbers and texts together: give it one kind of columns")
    own, steps, reading = clone(transformer), {}, {}
    if all(numeric):
        reading = {decision.name: dict(decision.reading) for decision in decisions}
        values = np.column_stack([read_numbers(table.column(name), "number", reading[name]) for name in names])
        if not _fills(own):
            steps["fill"] = storable("SimpleImputer")(strategy="median", keep_empty_features=True).fit(values)
            values = steps["fill"].transform(values)
    else:
        values = np.column_stack([read_levels(table.column(name)) for name in names])
    try:
        found = dense(own.fit(values).transform(values))
    except Exception as error:  # a transformer of the user may raise anything
        raise DataError(f"{_describe(transformer, names)} failed: {in_one_line(error)}") from error
    if len(found) != table.n_rows:
        raise DataError(f"{_describe(transformer, names)} returned {len(found):,} rows for {table.n_rows:,}")
    kind = "numbers" if all(numeric) else "texts"
    features = tuple(_own_names(own, names, found.shape[1]))
    return Treatment(names, kind, reading, features, repr(transformer), steps={**steps, "own": own})


def _fills(transformer: Any) -> bool:
    """Whether a transformer handles gaps itself, as imputers and pipelines that begin with one do."""
    first = transformer.steps[0][1] if hasattr(transformer, "steps") else transformer
    return type(first).__name__.endswith("Imputer") or type(first).__name__ == "MissingIndicator"


def _own_names(transformer: Any, columns: Sequence[str], count: int) -> list[str]:
    """The names of the features of a transformer; they never are those of the columns, whose values they are not."""
    try:
        names = [str(name) for name in transformer.get_feature_names_out(np.array(columns, dtype=object))]
    except Exception:  # many have no names
        names = []
    if len(names) != count or len(set(names)) < count:
        names = [f"{'_'.join(columns)}_{number}" for number in range(count)]
    called = type(transformer).__name__.lower()
    return [f"{name}_{called}" if name in columns else name for name in names]


def _scaler(how: str, n_rows: int) -> Any:
    """The transformer that scales a number."""
    if how == "quantile":
        # without a subsample, which would depend on chance
        return storable("QuantileTransformer")(n_quantiles=max(1, min(_QUANTILES, n_rows)), subsample=None)
    return storable(_SCALERS[how])()


def _describe(transformer: Any, columns: Sequence[str]) -> str:
    return f"the transformer {type(transformer).__name__} of {' and '.join(map(repr, columns))}"
