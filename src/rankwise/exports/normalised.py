"""A weighted sum for engines that know normalisers, w (x - center) / scale, and no constant: Solr, Elasticsearch.

The scaling of the features stays what it is, which float32 bears better than weights on raw features: the difference
x - center is taken before anything is rounded away. A constant c goes into the normaliser of the feature with the
largest weight: w (x - (center - c scale / w)) / scale = w (x - center) / scale + c.
"""

from dataclasses import dataclass

import numpy as np

from rankwise.exports.formula import WeightedSum
from rankwise.exports.single import as_single


@dataclass(frozen=True)
class Normalised:
    """Features in use, their weights, the normalisers of those that have one, and what could not be said."""

    used: list[int]
    weight: dict[int, float]
    center: dict[int, float]
    scale: dict[int, float]
    dropped: float
    note: str

    def weights(self, names: tuple[str, ...]) -> dict[str, float]:
        """Weight by name of the feature."""
        return {names[place]: self.weight[place] for place in self.used}


def normalised(formula: WeightedSum, engine: str) -> Normalised:
    """The sum in the terms of an engine with normalisers and float32; numbers that it cannot hold are refused."""
    used = formula.used
    width = len(formula.names)
    center = np.zeros(width) if formula.center is None else formula.center.copy()
    scale = np.ones(width) if formula.scale is None else formula.scale
    with_norm = set() if formula.center is None else set(used)
    dropped, note = formula.constant, ""
    if formula.constant:
        largest = max(used, key=lambda place: abs(formula.weight[place]))
        if formula.weight[largest]:
            center[largest] -= formula.constant * scale[largest] / formula.weight[largest]
            with_norm.add(largest)
            dropped = 0.0
            note = (
                f"{engine} knows no constant: {formula.constant:.6g} is part of the normaliser of "
                f"{formula.names[largest]!r}"
            )
        else:
            note = f"{engine} knows no constant: {formula.constant:.6g} is left out, which no ranking sees"
    for values, what in ((formula.weight, "weight"), (center, "center"), (scale, "scale")):
        as_single(values, formula.names, what, engine, added=what == "center")
    return Normalised(
        used,
        {place: float(formula.weight[place]) for place in used},
        {place: float(center[place]) for place in sorted(with_norm)},
        {place: float(scale[place]) for place in sorted(with_norm)},
        dropped,
        note,
    )
