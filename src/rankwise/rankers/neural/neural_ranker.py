"""NeuralRanker: a small residual network, trained on any loss of the package and stopped by the measure itself.

:mod:`rankwise.rankers.neural.network` is the network, :mod:`rankwise.rankers.neural.network` one epoch of its
training. Neither needs PyTorch; :mod:`rankwise.torch` serves networks of one's own.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._parameters import NonNegativeFloat, NumberRange, PositiveFloat, PositiveInt, Seed, as_random
from rankwise._progress import progress
from rankwise._store import Store
from rankwise.errors import RankwiseError
from rankwise.losses import PairLogistic
from rankwise.losses._base import Loss, smoothed
from rankwise.losses.smooth_ndcg import SmoothNDCG
from rankwise.queries import checks
from rankwise.queries.checks import Floats
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker
from rankwise.rankers._history import History, history_arrays, read_history
from rankwise.rankers._model_selection import mean_measure, parts_of
from rankwise.rankers._parameters import AnyLoss
from rankwise.rankers.neural.network import Layers, Network, Training

Vector = NDArray[np.float64]

_HISTORY: dict[str, type[np.generic]] = {"epoch": np.int64, "loss": np.float64, "validation": np.float64}
_HELD_OUT = 5  # one part of so many is held out where there is no validation set
_WIDEST = 1 << 16


@dataclass(eq=False, repr=False, kw_only=True)
class NeuralRanker(Ranker):
    r"""A small neural network.

    s(x) = v . h_L + u . z,  h_l = max(W_l h_{l-1} + b_l, 0) (+ h_{l-1} where both are equally wide),  h_0 = z.

    z = (x - center) / scale has mean 0 and deviation 1 on the training documents. W, b, v and u minimize the mean loss
    of the training queries, by steps of AdamW on batches of whole queries; the epoch that is best by the measure on
    held-out queries is kept. The linear part u . z starts at 0 and passes the hidden layers by.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure that selects the epoch; ``score`` reports it.
    hidden : sequence of int, default=(64, 32)
        The widths of the hidden layers, at least one.
    loss : Loss, default=None
        What is minimized: any loss of :mod:`rankwise.losses`, or one of your own. None is the smoothed measure, such as
        :class:`~rankwise.losses.SmoothNDCG`, and ``SmoothNDCG(k=10)`` for a measure that cannot be smoothed.
    epochs : int, default=100
        The largest number of passes over the queries.
    batch : int, default=16
        Number of queries per step.
    learning_rate : float, default=0.002
        The size of a step.
    weight_decay : float, default=0.01
        The share of every weight but the biases that a step takes away, in units of the learning rate.
    patience : int, default=15
        Epochs without a better measure on the held-out queries after which training stops; None goes on to ``epochs``.
    dropout : float, default=0.1
        The probability with which a hidden value is set to 0 in a step of training.
    random_state : int or numpy.random.Generator, default=0
        Seed of everything that is drawn.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    missing : {"error", "zero", "min"}, default="error"
        What to do with NaN in arrays.

    Attributes
    ----------
    network_ : Network
        The network: the standardization, and all weights.
    epoch_ : int
        The epoch that is kept, from 1.
    history_ : History
        One row per epoch: epoch, loss (the mean on the training queries during the epoch), and the measure on the
        held-out queries.

    Notes
    -----
    Without a validation set a fifth of the training queries, drawn at random, selects the epoch, and the network is
    trained on the others. Where there is only one query, or the measure is undefined for all that are held out, the
    last epoch is kept.

    Training is in float32, on one thread of BLAS; scores are computed in float64, row by row, by the same code during
    and after the fit. Neither training nor scoring needs PyTorch. X is read batch by batch; only the documents of a
    fifth that is held out are copied. There is no bound on a network from its training queries: certificates rest on a
    hold-out set.

    After Ctrl-C the ranker holds the best epoch so far.

    References
    ----------
    C. Burges et al. (2005). Learning to rank using gradient descent. ICML. doi:10.1145/1102351.1102363.

    K. He, X. Zhang, S. Ren, J. Sun (2016). Deep residual learning for image recognition. CVPR.
    doi:10.1109/CVPR.2016.90.

    Examples
    --------
    >>> from rankwise import make_lists
    >>> queries = make_lists(60, documents=8, features=4, random_state=1)
    >>> model = NeuralRanker(hidden=(8,), epochs=5).fit(queries)
    >>> model.network_.widths, len(model.history_)
    ((4, 8), 5)
    """

    name = "NeuralRanker"
    _reason_no_document_weights = "a step takes whole queries"
    takes_validation = True

    hidden: Sequence[Annotated[int, NumberRange(1, _WIDEST, closed="both")]] = (64, 32)
    loss: AnyLoss | None = None
    epochs: PositiveInt = 100
    batch: PositiveInt = 16
    learning_rate: PositiveFloat = 0.002
    weight_decay: NonNegativeFloat = 0.01
    patience: PositiveInt | None = 15
    dropout: Annotated[float, NumberRange(0, 1)] = 0.1
    random_state: Seed = 0

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests of all rankers use."""
        return cls(hidden=(5, 5), epochs=6, batch=4), cls("AP", hidden=(3,), loss=PairLogistic(), epochs=4, dropout=0)

    # ------------------------------------------------------------------------------------------- learning

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        rng = as_random(self.random_state)
        train, held = self._divide(queries, rng) if validation is None else (queries, validation)
        training = Training.of(
            train,
            self._choose_loss(),
            tuple(map(int, self.hidden)),
            rng,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            batch=self.batch,
            dropout=self.dropout,
            n_jobs=self.n_jobs,
        )
        record = EpochRecord(training.network)

        def keep() -> bool:
            if record.rows:
                self._take(record)
            return bool(record.rows)

        bar = progress("training", self.epochs, enabled=None if self.verbose else False)
        with self._keep_on_interrupt(keep), bar:
            while not record.ends(self.epochs, self.patience):
                loss = training.epoch()
                network = replace(training.network, theta=training.network.theta.copy())
                record = record.with_epoch(loss, self._worth(network, held), network)
                bar.advance(1)
            self._take(record)

    def _choose_loss(self) -> Loss:
        if self.loss is not None:
            return self.loss
        try:
            return smoothed(self._measure())
        except RankwiseError:
            return SmoothNDCG(k=10)

    def _divide(self, queries: Queries, rng: np.random.Generator) -> tuple[Queries, Queries | None]:
        """(queries to train on, queries that select the epoch); the same queries and None if there is only one."""
        parts = parts_of(queries, _HELD_OUT, rng)
        if not parts:
            return queries, None
        inside = np.zeros(len(queries), dtype=bool)
        inside[parts[0]] = True
        own = queries.query_weight
        return queries.with_weight(np.where(inside, 0.0, own)), queries[inside]

    def _worth(self, network: Network, held: Queries | None) -> float:
        if held is None:
            return math.nan
        return mean_measure(held, network.predict(held.X, self.n_jobs), self._measure(), self.n_jobs)

    def _take(self, record: "EpochRecord") -> None:
        """Set the best epoch of those that are finished."""
        self.epoch_, self.network_ = record.best, record.network
        columns = zip(*record.rows, strict=True)
        self._set_history({name: np.array(column) for name, column in zip(_HISTORY, columns, strict=True)})

    def _set_history(self, columns: Mapping[str, Any]) -> None:
        self.history_ = History(columns, ("validation",), f"{self._measure().title} on held-out queries by epoch")

    # ------------------------------------------------------------------------------------------- scores

    def _scores(self, X: Floats) -> Vector:
        return self.network_.predict(X, self.n_jobs)

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        network = self.network_
        arrays: dict[str, NDArray[Any]] = {"center": network.center, "scale": network.scale, "theta": network.theta}
        return {"hidden": list(network.widths[1:]), "epoch": self.epoch_}, arrays | history_arrays(self.history_)

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:

        hidden = [checks.as_whole(width, "a width of its network", 1, _WIDEST) for width in facts["hidden"]]
        width = self.n_features_in_
        center, scale = (store.array(name, np.float64, (width,)) for name in ("center", "scale"))
        layers = Layers((width, *hidden))
        theta = store.array("theta", np.float32, (layers.size if hidden else -1,))
        if not (np.isfinite(theta).all() and np.isfinite(center).all() and np.isfinite(scale).all()):
            raise RankwiseError("its network has weights that are not finite")
        if (scale <= 0).any():
            raise RankwiseError("its network divides features by 0 or less")
        columns = read_history(store, _HISTORY)
        self.epoch_ = checks.as_whole(facts["epoch"], "its epoch", 1, len(columns["epoch"]))
        self.network_ = Network(center, scale, layers.widths, theta)
        self._set_history(columns)


class EpochRecord(NamedTuple):
    """The finished epochs of a fit, and the best of them; Ctrl-C finds a whole record, for each epoch makes a new one.

    Attributes
    ----------
    network : Network
        The network of the best epoch by the measure, the first of equals; of the last one where it is undefined.
    best : int
        The number of that epoch, from 1; 0 before the first.
    top : float
        Its measure.
    rows : tuple of tuple
        (epoch, loss, measure) of every finished epoch.
    """

    network: Network
    best: int = 0
    top: float = -math.inf
    rows: tuple[tuple[int, float, float], ...] = ()

    def with_epoch(self, loss: float, worth: float, network: Network) -> "EpochRecord":
        """The record after one more epoch."""
        epoch = len(self.rows) + 1
        rows = (*self.rows, (epoch, loss, worth))
        if math.isnan(worth) or worth > self.top:
            return EpochRecord(network, epoch, self.top if math.isnan(worth) else worth, rows)
        return self._replace(rows=rows)

    def ends(self, epochs: int, patience: int | None) -> bool:
        """Whether there were so many epochs, or so many since the best one."""
        done = len(self.rows)
        return done >= epochs or (patience is not None and done - self.best >= patience)
