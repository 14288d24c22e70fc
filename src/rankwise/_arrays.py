"""Types of arrays in annotations; a docstring says the shape where it matters."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
