"""State and account of an online run as plain JSON and plain arrays."""

import math
from collections.abc import Mapping
from dataclasses import astuple, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise._store import Store
from rankwise.data.fingerprints import TrainingRecord
from rankwise.guarantees.weights import WeightFacts
from rankwise.solvers.curve import Curve, Tally
from rankwise.solvers.ledger import Ledger
from rankwise.solvers.online import Rules, State

_NUMBERS = ("rounds", "counted", "mistakes", "loss", "measured", "radius", "lightest", "heaviest")
_FACTS = tuple(field.name for field in fields(WeightFacts))


def pack(state: State, ledger: Ledger) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """(facts, arrays) that :func:`unpack` makes the same run of."""
    arrays = {f"state.{field.name}": getattr(state, field.name) for field in fields(State)}
    arrays["account"] = np.array([getattr(ledger, name) for name in _NUMBERS], dtype=np.float64)
    arrays["weights"] = np.array([getattr(ledger.weights, name) for name in _FACTS], dtype=np.float64)
    arrays["curve"] = ledger.curve.points
    arrays["tally"] = ledger.tally.counts
    if ledger.record is not None:
        arrays["record"] = np.array(astuple(ledger.record), dtype=np.uint64)
    return {"eta": float(ledger.rules.eta), "stride": ledger.curve.stride}, arrays


def unpack(facts: Mapping[str, Any], store: Store, rules: Rules, features: int) -> tuple[State, Ledger]:
    """The run that was packed; what cannot be one is refused."""
    wide, two = (features,), (2, features)
    state = State(
        w=store.array("state.w", np.float64, wide),
        sums=store.array("state.sums", np.float64, two),
        moments=store.array("state.moments", np.float64, two),
        counts=store.array("state.counts", np.int64, (2,)),
        sizes=store.array("state.sizes", np.float64, (2,)),
        scale=store.array("state.scale", np.float64, wide),
    )
    account = dict(zip(_NUMBERS, store.array("account", np.float64, (len(_NUMBERS),)).tolist(), strict=True))
    weights = dict(zip(_FACTS, store.array("weights", np.float64, (len(_FACTS),)).tolist(), strict=True))
    stride, tally = facts.get("stride"), store.array("tally", np.uint16, (None,))
    finite = all(np.isfinite(getattr(state, field.name)).all() for field in fields(State))
    counts = (*state.counts.tolist(), account["rounds"], account["mistakes"], weights["longest"])
    whole = all(math.isfinite(number) and number >= 0 and float(number).is_integer() for number in counts)
    if not finite or not whole or not isinstance(stride, int) or stride < 1:
        raise RankwiseError("the state of its run is not one that a run can be in")
    account |= {name: int(account[name]) for name in ("rounds", "mistakes")}
    weights["longest"] = int(weights["longest"])
    # runs of older versions have no record of their queries
    record = TrainingRecord(*store.array("record", np.uint64, (4,)).tolist()) if "record" in store else None
    return state, Ledger(
        rules,
        **account,
        weights=WeightFacts(**weights),
        curve=Curve(stride, store.array("curve", np.float64, (None, 5))),
        tally=Tally(len(tally), tally),
        record=record,
    )
