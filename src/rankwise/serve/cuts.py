"""The cut-offs of a service: which of them belongs to the version of a model that ranks.

A cut-off belongs to one state of a model. It is found by the digest of that state, so a model that learns further has
none until one is calibrated for it.
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._arrays import Vector
from rankwise.guarantees.cutoff import Cutoff
from rankwise.rankers._base import Ranker
from rankwise.rankers._record import digest_of_scores
from rankwise.serve.log import RequestError


class Cutoffs:
    """Cut-offs by the state of the model that they belong to.

    Parameters
    ----------
    given : sequence of Cutoff or path, default=()
        The cut-offs, or their files.
    """

    def __init__(self, given: "Sequence[Cutoff | str | os.PathLike[str]]" = ()) -> None:
        every = [one if isinstance(one, Cutoff) else Cutoff.load(one) for one in given]
        self._by_model = {one.model: one for one in every if one.model is not None}
        self._known: dict[str, tuple[Any, str]] = {}  # the newest version of each model that was asked for

    def kept(self, name: str, version: int, ranker: Ranker, scores: Vector) -> NDArray[np.bool_]:
        """Which documents of one query are kept.

        Parameters
        ----------
        name : str
            The model.
        version : int
            Its version.
        ranker : Ranker
            The ranker of this version.
        scores : ndarray, shape (n_documents,)
            The scores.

        Returns
        -------
        ndarray of bool, shape (n_documents,)
            True for the documents that are kept.

        Raises
        ------
        RequestError
            If there is no cut-off for this version.
        """
        if not self._by_model:
            raise RequestError("this service has no cut-off: start it with --cutoff FILE", 409)
        known = self._known.get(name)
        if known is None or known[0] != version:
            known = self._known[name] = version, digest_of_scores(ranker)
        found = self._by_model.get(known[1])
        if found is None:
            raise RequestError(
                f"version {version:,} of model {name!r} has no cut-off: one belongs to one state of a model, and what "
                "was learned since then needs one of its own",
                409,
            )
        return found.kept_of(scores, np.zeros(len(scores), np.int64), np.array([len(scores)]))
