"""Fitted transformers as JSON and arrays, and back: no pickle, and nothing in a file is trusted.

:class:`Packed` takes plain values, arrays, and the transformers of a named list (:data:`STORABLE`) apart into JSON
values and arrays by name; :func:`unpack` puts them together again. What is restored are numbers and texts in
instances of the listed classes: parameters are checked by scikit-learn's own rules, attributes may not hide anything of
the class, and what compiled code relies on is computed again.
"""

import importlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import FileFormatError, RankwiseError

# the classes of every module, in scikit-learn or in this package
_CLASSES = {
    "sklearn.impute": "SimpleImputer MissingIndicator",
    "sklearn.preprocessing": "OneHotEncoder OrdinalEncoder QuantileTransformer PowerTransformer StandardScaler "
    "MinMaxScaler MaxAbsScaler RobustScaler SplineTransformer KBinsDiscretizer PolynomialFeatures",
    "sklearn.kernel_approximation": "Nystroem RBFSampler PolynomialCountSketch",
    "sklearn.pipeline": "Pipeline",
    "rankwise.features.kernel_maps": "FourierFeatures KernelPCAMap",
    "rankwise.queries.scaling": "Scaler",
}
STORABLE = {name: module for module, names in _CLASSES.items() for name in names.split()}
_SCALARS = ("float64", "float32", "int64", "int32", "bool")
_DTYPES = (*_SCALARS, "object", "int8", "uint8", "intp")
_DEEPEST = 12
_MOST_OUTPUTS = 100_000  # of polynomial features, whose number explodes with the degree
_T = "is"  # the key that says what a JSON object stands for


class NotStorableError(RankwiseError):
    """A value that no file can hold."""


# ---------------------------------------------------------------------------------------------------------- writing


class Packed:
    """Values taken apart.

    Attributes
    ----------
    arrays : dict of str to ndarray
        The arrays so far, by the names that the JSON values refer to.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}

    def pack(self, value: Any, what: str) -> Any:
        """Take a value apart.

        Parameters
        ----------
        value : object
            The value.
        what : str
            What it is, for messages.

        Returns
        -------
        json : object
            A JSON value; arrays in it are names in :attr:`arrays`.

        Raises
        ------
        NotStorableError
            If the value, or one inside of it, cannot be stored.
        """
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {_T: "float", "value": repr(float(value))}
        if isinstance(value, np.generic):
            return self._scalar(value, what)
        if isinstance(value, np.ndarray):
            return self._array(value, what)
        if isinstance(value, (list, tuple)):
            items = [self.pack(item, what) for item in value]
            return {_T: "tuple" if isinstance(value, tuple) else "list", "items": items}
        if isinstance(value, dict):
            return {_T: "dict", "items": [[self.pack(one, what) for one in pair] for pair in value.items()]}
        if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
            name = np.dtype(value).name
            if name in _DTYPES:
                return {_T: "dtype" if isinstance(value, np.dtype) else "type", "name": name}
        if type(value).__name__ == "BSpline" and type(value).__module__.startswith("scipy."):
            parts = {name: self.pack(getattr(value, name), what) for name in ("t", "c", "k", "extrapolate")}
            return {_T: "spline", **parts}
        return self._transformer(value, what)

    def _scalar(self, value: np.generic, what: str) -> Any:
        if value.dtype.name not in _SCALARS:
            raise NotStorableError(f"{what} cannot be saved: it holds a number of type {value.dtype}")
        return {_T: "scalar", "dtype": value.dtype.name, "value": self.pack(value.item(), what)}

    def _array(self, value: NDArray[Any], what: str) -> Any:
        if value.dtype.kind in "OU":
            items = [self.pack(item, what) for item in value.ravel().tolist()]
            return {_T: "objects", "shape": list(value.shape), "items": items}
        if value.dtype.name not in _DTYPES:
            raise NotStorableError(f"{what} cannot be saved: it holds an array of type {value.dtype}")
        name = f"features.{len(self.arrays)}"
        self.arrays[name] = np.ascontiguousarray(value).reshape(-1)
        # the order in memory decides which BLAS routine multiplies, and hence the last bits
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        return {_T: "array", "name": name, "shape": list(value.shape), "order": order}

    def _transformer(self, value: Any, what: str) -> Any:
        kind = type(value).__name__
        if kind not in STORABLE or type(value) is not storable(kind):
            raise NotStorableError(
                f"{what} cannot be saved: it holds a {kind}, and a file holds numbers, texts and the transformers "
                f"{', '.join(STORABLE)}"
            )
        parameters = value.get_params(deep=False)
        learned = {name: item for name, item in vars(value).items() if name not in parameters}
        return {
            _T: "transformer",
            "class": kind,
            "parameters": {name: self.pack(item, f"{kind} of {what}") for name, item in parameters.items()},
            "learned": {name: self.pack(item, f"{kind} of {what}") for name, item in learned.items()},
        }


def storable(name: str) -> Any:
    """A class of the list, imported when it is needed."""
    return getattr(importlib.import_module(STORABLE[name]), name)


# ---------------------------------------------------------------------------------------------------------- reading


def unpack(json: Any, arrays: Mapping[str, NDArray[Any]], depth: int = 0) -> Any:
    """Put together what :class:`Packed` took apart.

    Parameters
    ----------
    json : object
        The JSON value, from a file that may be anybody's.
    arrays : mapping of str to ndarray
        The arrays of the file.
    depth : int, default=0
        How many values this one stands inside of.

    Returns
    -------
    value : object
        The value.

    Raises
    ------
    FileFormatError
        If no value is stored like this.
    """
    if depth > _DEEPEST:
        raise FileFormatError("values stand inside of each other without end")

    def read(inside: Any) -> Any:
        return unpack(inside, arrays, depth + 1)

    match json:
        case None | bool() | int() | float() | str():
            return json
        case {"is": "float", "value": "nan" | "inf" | "-inf" as value}:
            return float(value)
        case {"is": "scalar", "dtype": name, "value": value} if name in _SCALARS:
            if isinstance(number := read(value), (bool, int, float)):
                return np.dtype(name).type(number)
        case {"is": "array", "name": str(name), "shape": shape, "order": "C" | "F" as order}:
            flat = arrays.get(name)
            if flat is None or flat.ndim != 1 or flat.size != _size(shape):
                raise FileFormatError(f"a stored array {name!r:.40} is missing, or has another shape than {shape}")
            array: NDArray[Any] = flat.reshape(shape)
            return np.asfortranarray(array) if order == "F" else array
        case {"is": "objects", "shape": shape, "items": [*items]}:
            if len(items) != _size(shape):
                raise FileFormatError("a stored array of texts has another length than it says")
            found = np.empty(len(items), dtype=object)
            for place, item in enumerate(items):
                found[place] = read(item)
            return found.reshape(shape)
        case {"is": "list", "items": [*items]}:
            return [read(item) for item in items]
        case {"is": "tuple", "items": [*items]}:
            return tuple(read(item) for item in items)
        case {"is": "dict", "items": [*pairs]}:
            return dict(_read_pair(pair, read) for pair in pairs)
        case {"is": "dtype" | "type" as kind, "name": name} if name in _DTYPES:
            return np.dtype(name) if kind == "dtype" else np.dtype(name).type
        case {"is": "spline", "t": t, "c": c, "k": k, "extrapolate": extrapolate}:
            return _make_spline(read(t), read(c), k, extrapolate)
        case {"is": "transformer", "class": str(name), "parameters": dict(given), "learned": dict(learned)}:
            if name in STORABLE:
                return _make_transformer(name, given, learned, read)
    raise FileFormatError(f"a stored value is {json!r:.60}")


def _size(shape: Any) -> int:
    """The number of values of an array of a stored shape."""
    if not isinstance(shape, list) or len(shape) > 3 or not all(type(size) is int and size >= 0 for size in shape):
        raise FileFormatError(f"a stored array has shape {shape!r:.40}")
    return math.prod(shape)


def _read_pair(pair: Any, read: Callable[[Any], Any]) -> tuple[Any, Any]:
    """A key and its value."""
    if not isinstance(pair, list) or len(pair) != 2:
        raise FileFormatError(f"a stored pair is {pair!r:.40}")
    key, value = map(read, pair)
    if not isinstance(key, (str, int, tuple)):
        raise FileFormatError(f"a stored key is {key!r:.40}")
    return key, value


def _make_spline(t: Any, c: Any, k: Any, extrapolate: Any) -> Any:
    from scipy.interpolate import BSpline

    if not (isinstance(t, np.ndarray) and isinstance(c, np.ndarray) and type(k) is int and 0 <= k <= 20):
        raise FileFormatError("a stored spline lacks its knots, coefficients or degree")
    if extrapolate not in (True, False, "periodic") or t.dtype != np.float64 or c.dtype != np.float64:
        raise FileFormatError("a stored spline has knots or coefficients that are no numbers")
    return BSpline(t, c, k, extrapolate=extrapolate)  # which checks knots and shapes


def _make_transformer(name: str, given: dict[str, Any], learned: dict[str, Any], read: Callable[[Any], Any]) -> Any:
    kind = storable(name)
    strange = set(given) - set(kind._get_param_names())
    if strange:
        raise FileFormatError(f"a stored {name} has the parameters {sorted(strange)!r:.60}")
    made = kind(**{key: read(value) for key, value in given.items()})
    made._validate_params()  # the rules of the class itself
    for key, value in learned.items():
        # learned attributes end in _ or begin with _, and hide no method, property or constant of the class
        if not key.isidentifier() or not (key.endswith("_") or key.startswith("_")) or hasattr(kind, key):
            raise FileFormatError(f"a stored {name} has learned {key!r:.40}")
        setattr(made, key, read(value))
    if learned and name in _CHECKS:
        _CHECKS[name](made)
    return made


# ---------------------------------------------------------------- what compiled code relies on, computed again


def _check_onehot(encoder: Any) -> None:
    """The columns of each feature: a sparse matrix with an index beyond its width would write outside of its memory."""
    outputs = []
    mappings = getattr(encoder, "_default_to_infrequent_mappings", None) or [None] * len(encoder.categories_)
    dropped = encoder._drop_idx_after_grouping
    for place, levels in enumerate(encoder.categories_):
        count, mapping = len(levels), mappings[place]
        if mapping is not None:
            used = sorted(set(mapping.tolist()))
            count = len(used)
            if len(mapping) != len(levels) or any(number != place for place, number in enumerate(used)):
                raise FileFormatError("a stored OneHotEncoder has rare levels that do not fit its levels")
        if dropped is not None and dropped[place] is not None:
            if not 0 <= int(dropped[place]) < count:
                raise FileFormatError("a stored OneHotEncoder drops a level that it does not have")
            count -= 1
        outputs.append(count)
    if list(encoder._n_features_outs) != outputs or len(outputs) != encoder.n_features_in_:
        raise FileFormatError("a stored OneHotEncoder has other columns than its levels have")


def _check_polynomial(made: Any) -> None:
    """The number of outputs, for which memory is reserved before it is filled."""
    width, degree = made.n_features_in_, made.degree
    most = degree if isinstance(degree, int) else max(degree)
    if not (isinstance(width, int) and 0 < width < _MOST_OUTPUTS and 0 <= most <= 20):
        raise FileFormatError("stored polynomial features have an impossible number of inputs or degree")
    if math.comb(width + most, most) > _MOST_OUTPUTS:
        raise FileFormatError(f"stored polynomial features have more than {_MOST_OUTPUTS:,} outputs")
    fresh = type(made)(**made.get_params(deep=False)).fit(np.zeros((1, width)))
    made.__dict__.clear()
    made.__dict__.update(fresh.__dict__)


def _check_sketch(made: Any) -> None:
    """The size of the sketch, which is given by parameters alone."""
    if made.n_components > _MOST_OUTPUTS or made.degree > 20:
        raise FileFormatError("a stored PolynomialCountSketch has an impossible size")


def _check_splines(made: Any) -> None:
    """The number of outputs, for which memory is reserved before it is filled."""
    if not (isinstance(made.n_features_out_, int) and 0 < made.n_features_out_ <= _MOST_OUTPUTS):
        raise FileFormatError("a stored SplineTransformer has an impossible number of outputs")


def _check_kernel_pca(made: Any) -> None:
    """The shapes of the documents and of their projection, and the parameters of the kernel."""
    _check_matrix(made, "documents_", made.n_features_in_)
    _check_matrix(made, "projection_", None)
    shape: Any = getattr(made, "shape_", None)
    known = isinstance(shape, np.ndarray) and shape.shape == (4,) and shape.dtype == np.float64
    if not known or len(made.documents_) != len(made.projection_):
        raise FileFormatError("a stored KernelPCAMap has parts that do not fit together")
    if not np.isfinite(shape).all() or not 1 <= shape[2] <= 20:
        raise FileFormatError("a stored KernelPCAMap has an impossible kernel")


def _check_scaler(made: Any) -> None:
    """The state, as in other files."""
    type(made).from_state(*made.to_state())


def _check_matrix(made: Any, name: str, width: int | None) -> None:
    """Raise an error unless the attribute is a matrix of finite float64 with so many columns."""
    found = getattr(made, name, None)
    if not (
        isinstance(found, np.ndarray) and found.ndim == 2 and found.dtype == np.float64 and found.flags.c_contiguous
    ):
        raise FileFormatError(f"a stored {type(made).__name__} has no matrix {name}")
    if not found.size or (width is not None and found.shape[1] != width) or not np.isfinite(found).all():
        raise FileFormatError(f"a stored {type(made).__name__} has a matrix {name} that does not fit")


_CHECKS: dict[str, Callable[[Any], None]] = {
    # whose rows compiled code multiplies documents by
    "FourierFeatures": lambda made: _check_matrix(made, "frequencies_", made.n_features_in_),
    "KernelPCAMap": _check_kernel_pca,
    "Scaler": _check_scaler,
    "SplineTransformer": _check_splines,
    "OneHotEncoder": _check_onehot,
    "PolynomialFeatures": _check_polynomial,
    "PolynomialCountSketch": _check_sketch,
}
