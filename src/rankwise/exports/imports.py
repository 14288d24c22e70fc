"""Models of other tools, read as rankers: trees of LightGBM, XGBoost and CatBoost, RankLib's linear models and its
RankBoost, SVM-rank's and liblinear's models.

A reader gives what its tool would score with; the ranker can then predict, be saved, evaluated, certified and exported.
"""

import math
import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rankwise.errors import DataError, FileFormatError
from rankwise.io.any_file import booster_of
from rankwise.io.sources import plain_number, read_text
from rankwise.measures._base import Vector
from rankwise.rankers._base import Ranker
from rankwise.rankers.linear.linear_model import LinearModel
from rankwise.rankers.model_files import read_trees

Path = str | os.PathLike[str]

_MOST = 10_000_000  # features: a damaged number must not take all memory
_BLANKS = " \t\r\f\v"
_RANKLIB_LINEAR = ("coordinate ascent", "linear regression", "adarank")


class _Line(NamedTuple):
    """A line that is not blank, with its number."""

    number: int
    text: str


def read_model(
    path: Path,
    *,
    features: int | None = None,
    feature_names: Sequence[str] | None = None,
    measure: Any = "nDCG@10",
) -> Ranker:
    """Read a ranker from a model file of another tool, recognized by its content.

    ============================ ============================================================
    LightGBM                     ``save_model``
    XGBoost                      ``save_model`` to .json or .ubj, trees (gbtree, dart)
    CatBoost                     ``save_model`` to .json; .cbm with the package catboost
    RankLib                      Coordinate Ascent, Linear Regression, AdaRank, RankBoost
    SVM-rank, SVM-light          linear kernel; the score is w . x - b
    liblinear                    two classes or regression; a higher score is the higher label
    ============================ ============================================================

    Parameters
    ----------
    path : str or path-like
        The file; gzipped files work, too.
    features : int, default=None
        The number of features; a file of weights shows only the highest feature that it uses.
    feature_names : sequence of str, default=None
        The names of the features.
    measure : str or Measure, default="nDCG@10"
        The measure of ``score`` and of certificates of the ranker.

    Returns
    -------
    Ranker
        A fitted :class:`~rankwise.LinearModel`; :class:`~rankwise.TreeRanker` for LightGBM, XGBoost and CatBoost,
        whose methods have options; :class:`~rankwise.RankBoost` for RankLib's RankBoost.

    Raises
    ------
    FileFormatError
        If the file is of another kind or damaged.
    """
    booster = booster_of(path)
    if booster is not None:
        ranker = read_trees(path, booster, feature_names, measure)
        if features is not None and features != ranker.n_features_in_:
            raise DataError(f"{path} holds trees over {ranker.n_features_in_} features, got features={features}")
        return ranker
    lines = _lines(path)
    first = lines[0].text if lines else ""
    width = len(feature_names) if features is None and feature_names is not None else features
    if first.startswith("##"):
        return _ranklib(path, lines, width, feature_names, measure)
    if first.lower().startswith("svm-light"):
        weight, constant = _svm_light(path, lines)
    elif first.startswith("solver_type"):
        weight, constant = _liblinear(path, lines)
    else:
        raise FileFormatError(
            f"{path} is not a model that rankwise reads: expected a model that LightGBM, XGBoost (.json, .ubj) or "
            "CatBoost (.json, .cbm) saved, or RankLib's '## ...', 'SVM-light Version ...' or liblinear's "
            f"'solver_type ...' in its first line, got {first!r:.60}"
        )
    coef = _of_width(path, weight, width)
    return LinearModel.of(coef, intercept=constant, feature_names=feature_names, measure=measure)


# ------------------------------------------------------------------------------------------- lines


def _lines(path: Path) -> list[_Line]:
    r"""The lines that are not blank; only a line feed ends one, as in the tools that write such files.

    ``str.splitlines`` also splits at \x1e, U+2028 and others, which would take a weight out of a comment.
    """
    text = read_text(path).data.tobytes().decode()
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        if "\r" in line[:-1]:
            raise FileFormatError(f"{path}, line {number}: a carriage return inside a line: end lines with a line feed")
        if line.strip(_BLANKS):
            lines.append(_Line(number, line.strip(_BLANKS)))
    return lines


def _words(text: str) -> list[str]:
    """The words between blanks of ASCII."""
    return [word for word in re.split(f"[{_BLANKS}]+", text) if word]


# ------------------------------------------------------------------------------------------- RankLib


def _ranklib(
    path: Path, lines: list[_Line], width: int | None, names: Sequence[str] | None, measure: Any
) -> LinearModel | Ranker:
    """A model of RankLib."""
    # the first comment names the algorithm, and with it the format of the rest
    kind = lines[0].text[2:].strip().lower()
    body = [line for line in lines if not line.text.startswith("##")]
    if kind not in (*_RANKLIB_LINEAR, "rankboost"):
        raise FileFormatError(
            f"{path} holds RankLib's {kind!r:.40}, which is not a weighted sum of features or steps: expected "
            "Coordinate Ascent, Linear Regression, AdaRank or RankBoost"
        )
    if len(body) != 1:
        raise FileFormatError(f"{path}: expected one line of weights after those with ##, got {len(body)}")
    words = [(word, word.split(":")) for word in _words(body[0].text)]
    fields = 3 if kind == "rankboost" else 2
    weight: dict[int, float] = {}
    constant, steps = 0.0, []
    for word, parts in words:
        if len(parts) != fields:
            expected = "feature:threshold:alpha" if fields == 3 else "feature:weight"
            raise FileFormatError(f"{path}, line {body[0].number}: expected {expected}, got {word!r:.40}")
        place = _index(path, body[0].number, parts[0], 0 if kind == "linear regression" else 1)
        values = [_number(path, body[0].number, part) for part in parts[1:]]
        if fields == 3:
            steps.append((place - 1, *values))
        elif place == 0:
            constant = values[0]
        else:
            weight[place] = weight.get(place, 0.0) + values[0]  # AdaRank takes a feature several times
    if fields == 3:
        return _rankboost(path, steps, width, names, measure)
    return LinearModel.of(_of_width(path, weight, width), intercept=constant, feature_names=names, measure=measure)


def _rankboost(
    path: Path, steps: list[tuple[Any, ...]], width: int | None, names: Sequence[str] | None, measure: Any
) -> Ranker:
    """RankLib's RankBoost as a fitted ranker."""
    from rankwise.queries.checks import as_names
    from rankwise.rankers.boosting.steps import RankBoost

    feature, threshold, alpha = (np.array([step[place] for step in steps]) for place in range(3))
    ranker = RankBoost(measure, rounds=max(1, len(steps)))
    ranker.n_features_in_ = len(_of_width(path, dict.fromkeys((feature + 1).tolist(), 0.0), width))
    listed = as_names(names, ranker.n_features_in_)
    if listed is not None:
        ranker.feature_names_in_ = np.array(listed, dtype=object)
    unknown = dict.fromkeys(ranker._columns(), np.full(len(steps), np.nan))
    known = {"round": np.arange(1, len(steps) + 1), "feature": feature.astype(np.int64)}
    ranker._set({**unknown, **known, "threshold": threshold, "alpha": alpha}, len(steps))
    return ranker


# ------------------------------------------------------------------------------------------- SVM-light, liblinear


def _svm_light(path: Path, lines: list[_Line]) -> tuple[dict[int, float], float]:
    """w = sum over support vectors of alpha y x, and -b."""
    header: dict[str, str] = {}
    begin = len(lines)
    for place, line in enumerate(lines[1:], 1):
        value, mark, comment = line.text.partition("#")
        known = re.match(r"kernel type\b|threshold b\b", comment.strip(_BLANKS))
        if not mark:
            break
        if known:
            header[known[0]] = value.strip(_BLANKS)
        if "threshold b" in header:  # the last line before the support vectors
            begin = place + 1
            break
    if begin == len(lines) or "kernel type" not in header:
        raise FileFormatError(f"{path} is cut short: expected a kernel type, a threshold b and support vectors")
    if header["kernel type"] != "0":
        raise FileFormatError(f"{path} has kernel type {header['kernel type']!r:.20}: expected 0, a linear kernel")
    weight: dict[int, float] = {}
    for line in lines[begin:]:
        coefficient, *pairs = _words(line.text.partition("#")[0]) or [""]
        factor = _number(path, line.number, coefficient)
        for pair in pairs:
            number, mark, value = pair.partition(":")
            if not mark:
                raise FileFormatError(f"{path}, line {line.number}: expected feature:value, got {pair!r:.40}")
            if number == "qid":
                continue
            place = _index(path, line.number, number, 1)
            weight[place] = weight.get(place, 0.0) + factor * _number(path, line.number, value)
    return weight, 0.0 - _number(path, lines[begin - 1].number, header["threshold b"])


def _liblinear(path: Path, lines: list[_Line]) -> tuple[dict[int, float], float]:
    """The weights, and the weight of the bias times the bias; negated where the first class is the lower label."""
    begin = next((place for place, line in enumerate(lines) if line.text == "w"), None)
    header = {} if begin is None else {key: rest for key, *rest in (_words(line.text) for line in lines[:begin])}
    if begin is None or not {"nr_class", "nr_feature", "bias"} <= header.keys():
        raise FileFormatError(f"{path} is cut short: expected nr_class, nr_feature, bias and w")
    facts = {key: " ".join(header[key]) for key in ("nr_class", "nr_feature", "bias")}
    if facts["nr_class"] != "2":
        raise FileFormatError(f"{path} has {facts['nr_class']!r:.20} classes: expected 2, or a regression")
    width, bias = _index(path, 1, facts["nr_feature"], 0), _number(path, 1, facts["bias"])
    rows = lines[begin + 1 :]
    if len(rows) != width + (bias >= 0):
        raise FileFormatError(f"{path}: expected {width + (bias >= 0)} weights after w, got {len(rows)}")
    labels = [_number(path, 1, word) for word in header.get("label", [])]
    # liblinear scores for the first label in the file, whichever that is
    sign = -1.0 if len(labels) == 2 and labels[0] < labels[1] else 1.0
    values = [sign * _number(path, row.number, row.text) for row in rows]
    constant = values.pop() * bias if bias >= 0 else 0.0
    return dict(enumerate(values, 1)), constant


# ------------------------------------------------------------------------------------------- numbers


def _of_width(path: Path, weight: dict[int, float], width: int | None) -> Vector:
    """The weights as an array over all features."""
    highest = max(weight, default=0)
    if width is not None and width < highest:
        raise DataError(f"{path} uses feature {highest}, but there are only {width}: pass all features")
    coef = np.zeros(highest if width is None else width)
    for place, value in weight.items():
        coef[place - 1] = value
    if not len(coef) or not np.isfinite(coef).all():
        raise FileFormatError(f"{path} must hold at least one weight, and only weights that fit into float64")
    return coef


def _index(path: Path, line: int, word: str, least: int) -> int:
    """Parse the number of a feature."""
    if not re.fullmatch(r"[0-9]{1,9}", word) or not least <= int(word) <= _MOST:
        raise FileFormatError(f"{path}, line {line}: expected a feature number of at least {least}, got {word!r:.40}")
    return int(word)


def _number(path: Path, line: int, word: str) -> float:
    """Parse a finite number."""
    value = plain_number(word)
    if value is None or not math.isfinite(value):
        raise FileFormatError(f"{path}, line {line}: expected a number, got {word!r:.40}")
    return value
