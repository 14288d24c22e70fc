"""What a reader of LETOR text was asked for, checked by name."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from rankwise._errors import RankwiseError
from rankwise._kernels import drive
from rankwise._kernels import letor_rules as code
from rankwise.data.checks import Missing, as_names, as_whole

Unjudged = Literal["error", "drop", "zero"]
ZeroBased = bool | Literal["auto"]

_UNJUDGED = {"error": code.REFUSE, "drop": code.DROP, "zero": code.ZERO}


@dataclass(frozen=True)
class Reading:
    """How to read; ``rules`` may leave base and width open, to be found in the text, and a stream then settles them."""

    dtype: np.dtype[Any]
    missing: Missing
    names: tuple[str, ...] | None
    rules: code.Rules
    streaming: bool
    width_given: bool
    base_given: bool
    n_jobs: int | None

    def settled(self, rules: code.Rules) -> "Reading":
        """The same with the base and the width of a block that has been read."""
        return replace(self, rules=rules._replace(fixed_base=True, fixed_width=True))


def as_reading(
    dtype: Any,
    missing: Missing,
    unjudged: Any,
    zero_based: Any,
    n_features: int | None,
    feature_names: Sequence[str] | None,
    n_jobs: int | None,
    *,
    streaming: bool = False,
) -> Reading:
    """The options of :func:`read_letor` and :func:`iter_letor`, or the sentence that says which one is not right."""
    try:
        kind = np.dtype(dtype)
    except Exception as error:  # NumPy parses texts, and raises what its parser does
        raise RankwiseError(f"dtype is 'float64' or 'float32': found {dtype!r}") from error
    if kind not in (np.float32, np.float64):
        raise RankwiseError(f"dtype is 'float64' or 'float32': found {dtype!r}")
    drive.threads(n_jobs)  # refuses what is no number of threads
    if not (isinstance(missing, str) and missing in ("error", "zero", "min")):
        raise RankwiseError(f"missing is 'error', 'zero' or 'min': found {missing!r}")
    if not (isinstance(unjudged, str) and unjudged in _UNJUDGED):
        raise RankwiseError(f"unjudged is 'error', 'drop' or 'zero': found {unjudged!r}")
    if not (isinstance(zero_based, bool) or (isinstance(zero_based, str) and zero_based == "auto")):
        raise RankwiseError(f"zero_based is True, False or 'auto': found {zero_based!r}")
    if n_features is not None:
        n_features = as_whole(n_features, "n_features", 1, code.LARGEST_ID)
    if feature_names is not None:
        feature_names = as_names(feature_names, n_features) or ()
        n_features = len(feature_names) if n_features is None else n_features
    rules = code.Rules(
        base=0 if zero_based is True else 1,
        width=n_features or 0,
        fixed_base=zero_based != "auto",
        fixed_width=n_features is not None,
        qid=code.WITH_QID if streaming else code.EITHER,
        unjudged=_UNJUDGED[unjudged],
        refuse_missing=missing == "error",
    )
    names = None if feature_names is None else tuple(feature_names)
    return Reading(kind, missing, names, rules, streaming, rules.fixed_width, rules.fixed_base, n_jobs)
