"""`FeatureBuilder`: from a table with columns of any kind to queries with features, learned, reported and saved."""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

from rankwise._parameters import Check, OpenFraction, PositiveInt, check_parameters
from rankwise._tables import Table, notebook_html, paragraph
from rankwise.errors import DataError, FileFormatError, RankwiseError, in_one_line
from rankwise.features.codec import unpack
from rankwise.features.columns import ASKED, Decision, decide
from rankwise.features.per_query import WITHIN
from rankwise.features.roles import docids_of, labels_of, training_layout, weights_of
from rankwise.features.state import digest_of, digest_of_state, plain_state, read_state, rehearse
from rankwise.features.table import QueriesTable, RawTable, as_table
from rankwise.features.treatments import Layout, Treatment, treat, treat_by
from rankwise.io.tables.rows import TableRows, Unjudged, as_queries, list_names, without_unjudged
from rankwise.queries.checks import Floats, as_whole, first_repeated, refuse_unless_one_of
from rankwise.queries.grouping import by_id
from rankwise.queries.queries import Queries

_PLAN = ("column", "kind", "treatment", "features", "reason")
_LISTED = 12  # columns that a message names


class BuilderNotFittedError(RankwiseError, NotFittedError):  # type: ignore[misc]
    """Raised if a builder is used before ``fit``; also a ``sklearn.exceptions.NotFittedError``."""


@dataclass(eq=False, repr=False, kw_only=True)
class FeatureBuilder(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[misc, call-arg]
    """Learn from a table what to do with each column, and make features of tables in that way.

    ``fit`` decides what each column is (number, truth value, date, amount with a unit, category; or text, identifier,
    constant, which are left out) and learns its treatment with scikit-learn's transformers; :attr:`report_` says what
    and why. ``transform`` gives :class:`~rankwise.Queries`. A ranker that learns from these keeps the builder as
    ``features_``: its ``predict`` and ``rank`` take raw tables, and its file holds the builder.

    Parameters
    ----------
    qid : str, default="qid"
        The column of query ids.
    label : str, default="label"
        The column of labels, which later tables may lack; None for data without labels.
    docid : str, default=None
        The column of document ids; None takes a column called ``docid`` if there is one.
    weight : str, default=None
        The column of query weights, the same in every row of a query.
    columns : mapping of str to str, default=None
        What columns are, where the builder decides otherwise: "number", "boolean", "date", "category" or "ignore".
    ignore : sequence of str, default=()
        Columns that are not looked at.
    numbers : {"keep", "standard", "minmax", "robust", "quantile"}, default="keep"
        How numbers are scaled. Rankers that need a common scale have one of their own.
    missing : {"median", "keep"}, default="median"
        Gaps get the median and an indicator feature; or they stay NaN, for learners that take it.
    heavy_tails : {"log", "quantile", "keep"}, default="log"
        Numbers with a heavy tail become sign(x) log(1 + abs(x)), or their place among the training values.
    categories : {"onehot", "ordinal", "ignore"}, default="onehot"
        Categories get one feature per level, or one feature with the number of the level.
    max_levels : int, default=50
        Texts with more levels are no category and are left out.
    rare : float, int or None, default=0.01
        Levels below this share (or number) of the rows are put together with levels that training did not see.
    dates : {"age", "ignore"}, default="age"
        Dates become their age in days on the latest day of training.
    transformers : mapping of str or tuple of str to transformer, default=None
        Transformers of scikit-learn for columns, in place of the treatment above. A model with those of
        :data:`rankwise.features.codec.STORABLE` can be saved.
    per_query : mapping of str to str or list of str, default=None
        Numbers relative to the other documents of the query: "zscore", "rank" or "share" (of the maximum); "value" in a
        list keeps the number itself, too.
    grades : mapping of str to float, default=None
        The labels of the words in a label column of words.
    unjudged : {"error", "drop", "zero"}, default="error"
        What to do with rows whose label is missing or negative.

    Attributes
    ----------
    report_ : Table
        One row per column: what it is, what is done with it, the features and the reason.
    plan_ : list of dict
        The same as plain values.
    feature_names_out_ : tuple of str
        The features.
    columns_in_ : tuple of str
        The columns that ``transform`` reads, besides those with a role.
    n_features_in_ : int
        The number of columns of the training table.
    digest_ : str
        SHA-256 of what was learned, by which builders are compared.

    Examples
    --------
    >>> import pandas as pd
    >>> shop = pd.DataFrame({"qid": [1, 1, 2, 2], "label": [1, 0, 0, 2], "price": [9.5, None, 3.0, 4.5],
    ...                      "brand": ["acme", "zeta", "acme", "zeta"], "currency": ["EUR"] * 4})
    >>> builder = FeatureBuilder().fit(shop)
    >>> builder.get_feature_names_out().tolist()
    ['price', 'price_missing', 'brand=acme', 'brand=zeta']
    >>> builder.transform(shop)
    Queries(2 queries, 4 documents, 4 features, labels 0 to 2)
    """

    qid: str = "qid"
    label: str | None = "label"
    docid: str | None = None
    weight: str | None = None
    columns: Annotated[Any, Check("None or a dict of columns to kinds", lambda value: _are_kinds(value))] = None
    ignore: Annotated[Any, Check("a sequence of columns", lambda value: not isinstance(value, str))] = ()
    numbers: Literal["keep", "standard", "minmax", "robust", "quantile"] = "keep"
    missing: Literal["median", "keep"] = "median"
    heavy_tails: Literal["log", "quantile", "keep"] = "log"
    categories: Literal["onehot", "ordinal", "ignore"] = "onehot"
    max_levels: PositiveInt = 50
    rare: OpenFraction | PositiveInt | None = 0.01
    dates: Literal["age", "ignore"] = "age"
    transformers: Mapping[Any, Any] | None = None
    per_query: Annotated[Any, Check("None or a dict of columns to ways", lambda value: _are_ways(value))] = None
    grades: Mapping[str, float] | None = None
    unjudged: Unjudged = "error"

    # ------------------------------------------------------------------------------------------- learning

    def fit(self, X: Any, y: Any = None, **roles: str | None) -> "FeatureBuilder":
        """Decide what is done with each column, and learn it.

        Parameters
        ----------
        X : data frame, RawTable or Queries
            The training table, one row per document in any order: polars, pandas, Arrow, what
            :func:`rankwise.io.read_columns` read, or queries with named features.
        y : ignored
            For scikit-learn's pipelines; where labels are given here, the table needs no column of labels.
        **roles : str or None
            ``qid``, ``label``, ``docid`` and ``weight``, in place of the parameters of the same names.

        Returns
        -------
        self : FeatureBuilder
            The fitted builder.

        Raises
        ------
        DataError
            If a column with a role is not there, or no column makes a feature.
        """
        self._check_params()
        found = self._roles(roles)
        table = as_table(X)
        if not table.n_rows:
            raise DataError("FeatureBuilder.fit needs at least one document, got a table without rows")
        layout, owner, taken = training_layout(table, found, y is not None)
        decisions = self._decisions(table, owner, taken)
        treatments = self._treatments(table, decisions, layout)
        self._take(treatments, decisions, found, len(table.names))
        if not self.feature_names_out_:
            listed = "; ".join(f"{one.name}: {one.reason}" for one in decisions[:_LISTED])
            raise DataError(f"no column of the table makes a feature: {listed or 'there are none'}")
        return self

    def _roles(self, given: Mapping[str, str | None]) -> dict[str, str | None]:
        """The columns with a role."""
        known = ("qid", "label", "docid", "weight")
        for name in given:
            if name not in known:
                raise TypeError(f"FeatureBuilder.fit() got an unexpected keyword argument {name!r}")
        roles = {name: given[name] if given.get(name) is not None else getattr(self, name) for name in known}
        if "label" in given and given["label"] is None:
            roles["label"] = None
        return roles

    def _decisions(self, table: RawTable, owner: NDArray[np.int64] | None, taken: set[str]) -> list[Decision]:
        """The decision about each column that has no role."""
        named = {**dict.fromkeys(self.ignore, "ignore"), **dict(self.columns or {})}
        used = [name for key in self.transformers or () for name in _columns_of(key)]
        lacking = [name for name in (*named, *used, *(self.per_query or ())) if name not in table.names]
        if lacking:
            names = list_names(list(map(repr, lacking)))
            raise DataError(f"there is no column {names}, which the parameters of the builder name")
        asked = {"categories": "category", "dates": "date"}
        found = []
        for name in (name for name in table.names if name not in taken):
            one = decide(table.column(name), self.max_levels, owner, named.get(name))
            for parameter, kind in asked.items():
                if one.kind == kind and getattr(self, parameter) == "ignore" and name not in used:
                    one = Decision(name, "ignored", f"{one.reason}: {parameter}='ignore'")
            found.append(one)
        return found

    def _treatments(self, table: RawTable, decisions: list[Decision], layout: Layout) -> list[Treatment]:
        """Learn the treatment of each column."""
        known = {one.name: one for one in decisions}
        own = {_columns_of(key): transformer for key, transformer in (self.transformers or {}).items()}
        used = {name for key in own for name in key}
        made = []
        for one in decisions:
            within = _as_ways((self.per_query or {}).get(one.name, ()))
            if one.name in used or one.left_out:
                if within:
                    why = "a transformer has it" if one.name in used else one.reason
                    raise DataError(f"per_query names the column {one.name!r}, of which no number is made: {why}")
                continue
            if within and one.kind == "category":
                raise DataError(f"per_query names the column {one.name!r}, which is a category and not a number")
            made.append(treat(one, table, self, within, layout))
        for names, transformer in own.items():
            made.append(treat_by(transformer, [known[name] for name in names], table))
        order = {name: place for place, name in enumerate(table.names)}
        return sorted(made, key=lambda one: order[one.columns[0]])

    def _take(
        self, treatments: list[Treatment], decisions: list[Decision], roles: dict[str, str | None], width: int
    ) -> None:
        """Set what was learned, or read from a file."""
        names = _without_repeats([name for one in treatments for name in one.features])
        made: dict[str, tuple[str, list[str]]] = {}
        first = 0
        for one in treatments:
            mine = one.words, names[first : first + len(one.features)]
            first += len(one.features)
            made.update(dict.fromkeys(one.columns, mine))
        rows = []
        for decision in decisions:
            words, features = made.get(decision.name, ("left out", []))
            rows.append((decision.name, decision.kind, words, features, decision.reason))
        self.plan_: list[dict[str, Any]] = [dict(zip(_PLAN, row, strict=True)) for row in rows]
        shown = {name: [row[name] for row in self.plan_] for name in _PLAN}
        self.report_ = Table({**shown, "features": list(map(len, shown["features"]))})
        self.feature_names_out_ = tuple(names)
        self.columns_in_ = tuple(dict.fromkeys(name for one in treatments for name in one.columns))
        self.n_features_in_ = width
        self.roles_ = roles
        self._treated = treatments
        self._parameters = self.get_params(deep=False)  # set_params may change them after the fit
        self.digest_ = digest_of(self)

    # ------------------------------------------------------------------------------------------- applying

    def transform(self, X: Any) -> Queries:
        """Make queries of a table in the way that was learned.

        Parameters
        ----------
        X : data frame, RawTable or Queries
            A table with the columns of training, in any order; others are not looked at. The column of labels may be
            missing.

        Returns
        -------
        queries : Queries
            The queries, in order of first appearance, which carry this builder as ``built_by``.

        Raises
        ------
        DataError
            If columns are missing, all of which the message names, or hold what cannot be read.
        """
        self._check_fitted()
        return self.as_fitted()._transform(X)

    def as_fitted(self) -> "FeatureBuilder":
        """A copy with the parameters of the fit, which ``set_params`` and another fit do not change.

        Returns
        -------
        builder : FeatureBuilder
            The copy; what was learned is shared.
        """
        twin = copy(self)
        twin.__dict__.update(self._parameters)
        return twin

    def fit_transform(self, X: Any, y: Any = None, **roles: str | None) -> Queries:
        """Fit on a table and make queries of it.

        Parameters
        ----------
        X : data frame, RawTable or Queries
            The training table.
        y : ignored
            As for :meth:`fit`.
        **roles : str or None
            As for :meth:`fit`.

        Returns
        -------
        queries : Queries
            The queries.
        """
        return self.fit(X, y, **roles).transform(X)

    def _transform(self, X: Any, *, one_query: bool = False, judged: bool = True) -> Queries:
        """``transform``; a table without query ids may be one query, and labels are read only if ``judged``."""
        table = as_table(X)
        qid = str(self.roles_["qid"])
        grouped = isinstance(table, QueriesTable)
        wanted = [*self.columns_in_, *([] if grouped or one_query else [qid])]
        lacking = [name for name in wanted if name not in table.names]
        if lacking:
            names = list_names(list(map(repr, lacking)))
            raise DataError(f"the table has no column {names}, which the features were learned from")
        if isinstance(table, QueriesTable):
            queries = table.queries
            layout: Layout = (queries.start, queries.scattered_rows)
            return queries._replace(
                X=self._matrix(table, layout), feature_names=self.feature_names_out_, scaling=None, built_by=self
            )
        ids = table.identities(qid) if qid in table.names else np.zeros(table.n_rows, dtype=np.int64)
        parts = by_id(ids, table.n_rows)
        rows = self._rows(table, (parts.start, parts.rows), ids, judged)
        # features are put in last: they were checked, and may hold NaN if the builder leaves gaps
        queries = as_queries(rows._replace(X=np.empty((len(rows.X), 0))), [], "error", self.roles_["weight"])
        return queries._replace(X=rows.X, feature_names=self.feature_names_out_, built_by=self)

    def _block(self, table: RawTable, *, judged: bool = True) -> TableRows:
        """The features of consecutive rows of a table that is read in blocks, which may cut queries."""
        if self.needs_queries:
            raise DataError("features within queries (per_query=) need the table as a whole")
        layout = np.array([0, table.n_rows]), None
        return self._rows(table, layout, table.written_identities(str(self.roles_["qid"])), judged)

    def _rows(self, table: RawTable, layout: Layout, ids: Any, judged: bool) -> TableRows:
        """The rows of a table with their features."""
        rows = TableRows(
            self._matrix(table, layout),
            labels_of(table, self.roles_["label"], self.grades) if judged else None,
            ids,
            docids_of(table, self.roles_["docid"], self.columns_in_),
            weights_of(table, self.roles_["weight"]),
        )
        return rows if rows.y is None else without_unjudged(rows, self.unjudged)

    def _matrix(self, table: RawTable, layout: Layout) -> Floats:
        """The features of a table."""
        parts = [one.apply(table, layout) for one in self._treated]
        X: NDArray[np.float64] = np.ascontiguousarray(np.concatenate(parts, axis=1))
        bad = ~np.isfinite(X) if self.missing != "keep" else np.isinf(X)
        if bad.any():
            row, feature = np.unravel_index(int(np.argmax(bad)), X.shape)
            name = self.feature_names_out_[int(feature)]
            found = f"the feature {name!r} is {X[row, feature]} at row {table.first_row + int(row):,}"
            raise DataError(f"{found}: its column has an extreme value there, or its transformer left a gap")
        return X

    # ------------------------------------------------------------------------------------------- looking at it

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the features.

        Parameters
        ----------
        input_features : ignored
            For scikit-learn's pipelines.

        Returns
        -------
        names : ndarray of object
            One name per feature.
        """
        self._check_fitted()
        return np.array(self.feature_names_out_, dtype=object)

    @property
    def needs_queries(self) -> bool:
        """Whether a feature depends on the other documents of its query."""
        self._check_fitted()
        return any(one.needs_queries for one in self._treated)

    @property
    def is_plain(self) -> bool:
        """Whether every feature is a column as it is."""
        self._check_fitted()
        return all(one.is_plain for one in self._treated)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "digest_")

    def _repr_html_(self) -> str:
        """The report as HTML, for notebooks."""
        return self.report_._repr_html_() if hasattr(self, "report_") else notebook_html(paragraph(repr(self)))

    # ------------------------------------------------------------------------------------------- saving

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The fitted state as plain JSON values and plain arrays.

        Returns
        -------
        facts : dict
            Parameters, decisions, treatments and a digest.
        arrays : dict of ndarray
            The arrays that the facts refer to by name.

        Raises
        ------
        RankwiseError
            If it holds a transformer that no file can hold.
        """
        self._check_fitted()
        facts, arrays = plain_state(self)
        return {**facts, "digest": self.digest_}, arrays

    @classmethod
    def from_state(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "FeatureBuilder":
        """The builder with a given state.

        Parameters
        ----------
        facts : mapping
            As :meth:`to_state` returns them, from a file that may be anybody's.
        arrays : mapping of ndarray
            As :meth:`to_state` returns them.

        Returns
        -------
        builder : FeatureBuilder
            The fitted builder.

        Raises
        ------
        FileFormatError
            If no builder has this state.
        """
        try:
            if facts["digest"] != digest_of_state(facts, arrays):  # before anything is made of it
                raise FileFormatError("its numbers are not those that were saved")
            builder = cls(**unpack(facts["parameters"], arrays))
            builder._check_params()
            treatments, decisions, roles = read_state(facts, arrays)
            builder._take(treatments, decisions, roles, as_whole(facts["width"], "width"))
            rehearse(treatments)
        except Exception as error:  # a hostile file may provoke any error
            raise FileFormatError(f"the state of a FeatureBuilder is damaged: {in_one_line(error)}") from error
        return builder

    # ------------------------------------------------------------------------------------------- checks

    def _check_params(self) -> None:
        """Refuse parameters that are not known."""
        check_parameters(self)
        repeated = first_repeated([name for key in self.transformers or () for name in _columns_of(key)])
        if repeated is not None:
            raise RankwiseError(f"transformers names the column {repeated!r} twice")

    def _check_fitted(self) -> None:
        if not hasattr(self, "digest_"):
            raise BuilderNotFittedError("this FeatureBuilder is not fitted yet: call fit(training table) first")


def _columns_of(key: Any) -> tuple[str, ...]:
    """The columns of a key of ``transformers``."""
    return (key,) if isinstance(key, str) else tuple(key)


def _are_kinds(columns: Any) -> bool:
    """Whether a parameter maps columns to kinds; the first unknown kind raises an error."""
    for name, kind in dict(columns or {}).items():
        refuse_unless_one_of(kind, f"columns[{name!r}]", ASKED)
    return True


def _are_ways(per_query: Any) -> bool:
    """Whether a parameter maps columns to transformations within queries; the first unknown one raises an error."""
    for name, ways in dict(per_query or {}).items():
        for way in _as_ways(ways):
            refuse_unless_one_of(way, f"per_query[{name!r}]", WITHIN)
    return True


def _as_ways(ways: Any) -> tuple[str, ...]:
    """The transformations within queries of one column."""
    return (ways,) if isinstance(ways, str) else tuple(ways)


def _without_repeats(names: list[str]) -> list[str]:
    """Names of features; one that occurs again gets a number."""
    found: dict[str, None] = {}
    for name in names:
        number, fresh = 2, name
        while fresh in found:
            fresh, number = f"{name}#{number}", number + 1
        found[fresh] = None
    return list(found)
