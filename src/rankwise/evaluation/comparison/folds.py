"""The parts that a comparison trains on, selects on and tests on.

:func:`divide` makes folds from queries, from folds of the caller or from files, and checks that no query is in two
parts of a fold or tested twice. :class:`FoldParts` also assigns scores from elsewhere to the test parts.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import DataError
from rankwise.evaluation.files import read_scores
from rankwise.features.builder import FeatureBuilder
from rankwise.features.judged import apply_builder, new_builder, read_or_open
from rankwise.features.roles import docids_of, labels_of
from rankwise.features.table import RawTable, SelectedRows
from rankwise.io.any_file import read_any
from rankwise.io.folds import read_folds
from rankwise.io.tables.rows import TableRows, as_queries, without_unjudged
from rankwise.measures._base import Vector
from rankwise.queries import checks
from rankwise.queries.checks import is_whole
from rankwise.queries.folds import Fold, kfold, split
from rankwise.queries.overlap import overlap
from rankwise.queries.queries import Queries
from rankwise.rankers._record import record_of

USUAL_FOLDS = 5


@dataclass(frozen=True)
class FoldParts:
    """All folds of a comparison; a fold may have no training part, where nothing is trained, or no validation part.

    Attributes
    ----------
    folds : tuple of Fold
        The folds, in order.
    whole : Queries or None
        The queries that were divided, where one set was divided.
    rows : tuple of ndarray
        For every fold the rows of its test part in ``whole``.
    table : RawTable or None
        The table that features were made of, where a FeatureBuilder makes them.
    options : mapping
        How the table is read.
    """

    folds: tuple[Fold, ...]
    whole: Queries | None = None
    rows: tuple[NDArray[np.int64], ...] = ()
    table: RawTable | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def tested(self) -> Queries:
        """The test queries of all folds, one after the other.

        Where every fold has a FeatureBuilder of its own, they have the features of all folds, and 0 in those that a
        fold does not have: a level of a category that its training part lacks.
        """
        tests = [fold.test for fold in self.folds]
        if self.table is not None:
            names = tuple(dict.fromkeys(name for test in tests for name in test.feature_names or ()))
            tests = [_with_features(test, names) for test in tests]
        return tests[0] if len(tests) == 1 else Queries.concat(tests)

    def features_for(self, name: str, model: Any) -> Any:
        """The scores of a fitted model whose own FeatureBuilder makes its features of the table.

        Parameters
        ----------
        name : str
            The name of the model, for messages.
        model : Ranker
            The model.

        Returns
        -------
        ndarray
            One score per document of ``whole``.
        """
        assert self.table is not None
        assert self.whole is not None
        rows = SelectedRows(self.table, _table_rows(self.whole))
        built = apply_builder(model.features_, rows, "the data", self.options)
        self.refuse_seen(name, model, built)
        return model.predict(built)

    def scores_of(self, name: str, given: Any) -> list[Vector]:
        """Assign scores from elsewhere to the test part of every fold.

        Parameters
        ----------
        name : str
            The name of the scores, for messages.
        given : object
            An array, a file, or one of these for each fold.

        Returns
        -------
        list of ndarray
            One array of scores for each fold.
        """
        if self.whole is not None:
            values = self._for(name, given, self.whole, "the data")
            return [values[rows] for rows in self.rows]
        tests = [fold.test for fold in self.folds]
        if _is_one_a_fold(given, len(tests)):
            pairs = enumerate(zip(given, tests, strict=True), start=1)
            return [self._for(name, one, test, f"the test part of fold {number}") for number, (one, test) in pairs]
        # scores of all test parts in one array, in the order of the folds
        together = self._for(name, given, self.tested, "the test parts of all folds together")
        return np.split(together, np.cumsum([test.n_documents for test in tests])[:-1])

    def refuse_seen(self, name: str, model: Any, tested: Queries | None = None) -> None:
        """Raise an error where a model was trained or selected on test queries, as far as it remembers them."""
        seen = record_of(model).seen
        if seen is None:
            return
        tested = self.tested if tested is None else tested
        # a model remembers fingerprints of the queries of its fit, not the queries
        known = np.flatnonzero(overlap(tested, seen.training).identified | overlap(tested, seen.validation).identified)
        if len(known):
            raise DataError(
                f"{name!r} learned from {len(known):,} of the {len(tested):,} test queries, such as query "
                f"{tested.names()[known[0]]!r}: remove them, or pass a ranker that is not fitted"
            )

    @staticmethod
    def _for(name: str, given: Any, queries: Queries, what: str) -> Vector:
        """Scores for these queries, from an array or a file."""
        if isinstance(given, (str, os.PathLike)):
            return read_scores(given, queries)
        if np.shape(given) != (queries.n_documents,) and np.shape(given) != (queries.n_documents, 1):
            raise DataError(
                f"the scores of {name!r} have shape {np.shape(given)}: expected one per document of {what}, "
                f"which has {queries.n_documents:,}"
            )
        return checks.as_scores(given, queries.n_documents)


def divide(data: Any, folds: int | None, learning: bool, random_state: int, options: dict[str, Any]) -> FoldParts:
    """Make folds from whatever the caller gave.

    Parameters
    ----------
    data : Queries, RawTable, sequence of folds, str or path-like
        Queries, a table, folds, or the path of a file or of a folder of folds.
    folds : int or None
        The number of folds of queries.
    learning : bool
        Whether some ranker has to be trained.
    random_state : int
        Seed of the division.
    options : dict
        Options for reading files.

    Returns
    -------
    FoldParts
        The folds.
    """
    if isinstance(data, (str, os.PathLike)):
        data = _read(Path(data), options)
    if isinstance(data, RawTable):
        return _build(data, folds, learning, random_state, options)
    if isinstance(data, Queries):
        data.labels()
        return _divide(data, folds, learning, random_state)
    if folds is not None:
        raise DataError(f"the data are already divided into folds: remove folds={folds}")
    if not isinstance(data, Iterable):
        raise DataError(f"data must be Queries, folds, a file or a folder of folds, got {type(data).__name__}")
    parts = tuple(_part(fold, number) for number, fold in enumerate(data, start=1))
    if not parts:
        raise DataError("a comparison requires at least one fold")
    _refuse_shared(parts)
    return FoldParts(parts)


def _read(path: Path, options: dict[str, Any]) -> Any:
    """Read a file of queries, or a folder of folds; a table with words, dates or gaps is opened as it is."""
    if path.is_dir():
        known = {name: value for name, value in options.items() if name not in ("qid", "label", "kinds")}
        return read_folds(path, **known)
    known = {name: value for name, value in options.items() if name != "kinds"}
    return read_or_open(path, options, lambda: read_any(path, **known))


def _build(table: RawTable, folds: int | None, learning: bool, random_state: int, options: dict[str, Any]) -> FoldParts:
    """Divide a table by query, and make the features of every fold as its training part says.

    Nothing is learned from validation and test parts: kinds of columns, medians, levels and dates come from the
    training part alone, as they would for queries that come after training.
    """
    skeleton = _skeleton(table, options)
    divided = _divide(skeleton, folds, learning, random_state)
    made = []
    for fold in divided.folds:
        if fold.train is None:
            made.append(fold)
            continue
        builder = new_builder(options).fit(SelectedRows(table, _table_rows(fold.train)))
        held = None if fold.validation is None else _make(builder, fold.validation, table, options)
        made.append(Fold(_make(builder, fold.train, table, options), held, _make(builder, fold.test, table, options)))
    # rows are made query by query
    rows = tuple(place[fold.test.rows] for place, fold in zip(divided.rows, divided.folds, strict=True))
    return FoldParts(tuple(made), skeleton, rows, table, options)


def _skeleton(table: RawTable, options: dict[str, Any]) -> Queries:
    """The judged queries of a table, with the number of its row as the only feature of a document."""
    known = new_builder(options)
    labels = labels_of(table, known.label, known.grades)
    if labels is None:
        raise DataError(
            f"there is no column {known.label!r} of labels, which a comparison requires: pass label='its name'"
        )
    places = np.arange(table.n_rows, dtype=np.float64)[:, None]
    ids, docids = table.identities(known.qid), docids_of(table, known.docid, ())
    rows = without_unjudged(TableRows(places, labels, ids, docids, None), known.unjudged)
    return as_queries(rows, ["row"], "error")


def _table_rows(part: Queries) -> NDArray[np.int64]:
    """The rows of the table that a part of the skeleton stands for, query by query."""
    return np.asarray(part.X[part.rows, 0], dtype=np.int64)


def _make(builder: FeatureBuilder, part: Queries, table: RawTable, options: dict[str, Any]) -> Queries:
    """A part of the skeleton with features; gaps that the builder left are filled as the options say."""
    built = builder.transform(SelectedRows(table, _table_rows(part)))
    missing = options.get("missing", "error")
    if missing not in ("zero", "min"):
        return built
    return built._replace(X=checks.fill_missing(built.X, built.start, built.scattered_rows, missing))


def _with_features(test: Queries, names: tuple[str, ...]) -> Queries:
    """A test part with these features, 0 where it has none of a name."""
    own = test.feature_names or ()
    if own == names:
        return test
    X = np.zeros((test.n_documents, len(names)))
    X[:, [names.index(name) for name in own]] = test.X
    return test._replace(X=X, feature_names=names, built_by=None)


def _divide(data: Queries, folds: int | None, learning: bool, random_state: int) -> FoldParts:
    """Divide one set of queries, and keep track of the rows of the test parts."""
    # models that only score need no division: all queries are tested
    if folds is None and not learning:
        return FoldParts((Fold(None, None, data),), data, (np.arange(data.n_documents),))
    # the same division of the row numbers tells which rows a test part holds
    places_of = np.arange(data.n_documents, dtype=np.float64)[:, None]
    numbered = Queries._trusted(places_of, None, data.start, data.scattered_rows)
    if folds == 1:
        made = [Fold(*split(data, random_state=random_state))]
        places = [split(numbered, random_state=random_state)[2]]
    else:
        count = USUAL_FOLDS if folds is None else folds
        if not is_whole(count, 3):
            raise DataError(
                f"folds must be 1 (one division into three parts) or an integer of at least 3, got {count!r:.60}"
            )
        made = list(kfold(data, count, random_state=random_state))
        places = [fold.test for fold in kfold(numbered, count, random_state=random_state)]
    rows = tuple(place.X[:, 0].astype(np.int64) for place in places)
    return FoldParts(tuple(made), data, rows)


def _part(fold: Any, number: int) -> Fold:
    """A fold from (train, validation, test) or (train, test), checked."""
    parts = tuple(fold) if isinstance(fold, Iterable) and not isinstance(fold, Queries) else ()
    if len(parts) == 2:
        parts = (parts[0], None, parts[1])
    wanted = len(parts) == 3 and isinstance(parts[0], Queries) and isinstance(parts[2], Queries)
    if not wanted or not isinstance(parts[1], (Queries, type(None))):
        raise DataError(f"fold {number} must be a tuple (train, validation, test) or (train, test) of Queries")
    train, validation, test = parts
    # an empty validation part is the same as none
    if validation is not None and not len(validation):
        validation = None
    made = Fold(train, validation, test)
    for name, part in made._asdict().items():
        if part is None:
            continue
        part.labels()
        if not len(part):
            raise DataError(f"fold {number} has no query in its {name} part")
        if part.n_features != test.n_features:
            raise DataError(
                f"the parts of fold {number} must have the same features, got {part.n_features} in its {name} part and "
                f"{test.n_features} in its test part"
            )
    return made


def _refuse_shared(parts: Sequence[Fold]) -> None:
    """Raise an error where a query is in two parts of a fold or tested twice, which would bias the results."""
    tested: dict[Any, int] = {}
    for number, part in enumerate(parts, start=1):
        seen: dict[Any, str] = {}
        for name, queries in part._asdict().items():
            if queries is None or queries.qid is None:
                continue
            for query in queries.names():
                if seen.setdefault(query, name) != name:
                    raise DataError(
                        f"query {query!r} is in the {seen[query]} part and in the {name} part of fold {number}"
                    )
        for query in part.test.names() if part.test.qid is not None else ():
            if tested.setdefault(query, number) != number:
                raise DataError(
                    f"query {query!r} is tested in fold {tested[query]} and in fold {number}: every query must be "
                    "tested once (if they are different queries, read_folds(folder, rename=True) renames them)"
                )


def _is_one_a_fold(given: Any, folds: int) -> bool:
    """Whether scores came as a list with an array or a file for every fold."""
    if isinstance(given, (str, os.PathLike, np.ndarray)) or not isinstance(given, Sequence) or len(given) != folds:
        return False
    return all(isinstance(one, (str, os.PathLike)) or np.ndim(one) for one in given)
