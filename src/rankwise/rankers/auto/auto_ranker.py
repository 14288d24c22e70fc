"""`AutoRanker`: linear, boosted trees or both, whichever cross-validation over the training queries prefers."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import MissingExtraError, RankwiseError
from rankwise._extras import require
from rankwise._progress import progress
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.data import checks
from rankwise.data.concat import concat
from rankwise.data.queries import Queries
from rankwise.rankers._base import Ranker
from rankwise.rankers._model_selection import parts_of, weighted_mean
from rankwise.rankers.auto.boosted_folds import BoostedFolds
from rankwise.rankers.auto.choice import Difference, choose, criterion, criterion_measures, judged
from rankwise.rankers.committee import Committee, within_query_deviation

Vector = NDArray[np.float64]

LINEAR, BOOSTED, HALF = "linear", "boosted", "half and half"
# Queries from which on one held-out part chooses, and the most that it holds: errors of such means are small enough.
_MANY, _MOST_HELD_OUT = 2_000, 2_000
