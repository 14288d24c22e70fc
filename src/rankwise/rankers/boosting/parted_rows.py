"""Symmetric trees grown on data sets in parts: what a tree asks of the rows is a pass over ranges of queries.

:class:`RangeJob` holds a range of a model's rows in a worker, as :class:`~rankwise.rankers.boosting.tree_rows.TreeRows`
on mapped bins, with scores, derivatives and leaves beside them. A message says how many trees there are, which of them
are new, and what the tree under way has asked so far. That is all that a range depends on: one whose worker is lost is
made again by another from the trees, to the same bits. Ranges that lack trees say so, and are sent all of them.

Answers are integers and maxima. They are added as they come, so neither ranges nor workers change a bit.
"""

import hashlib
import logging
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._progress import remark
from rankwise.errors import DataError, RankwiseError
from rankwise.losses._base import Loss
from rankwise.losses.compute import loss_lists
from rankwise.queries.passes.journal import digest_of
from rankwise.queries.queries import Queries
from rankwise.queries.source import Chunk, Job
from rankwise.rankers._base import linear_scores
from rankwise.rankers.boosting.annealed import begins_of, loss_before, mean_square, squares_within
from rankwise.rankers.boosting.binned_parts import BinnedFile, BinnedParts, JoinedParts, QueryRanges, RangedQueries
from rankwise.rankers.boosting.growing import STATIONARY
from rankwise.rankers.boosting.objectives import Derivatives, normal_scores, typical
from rankwise.rankers.boosting.packed_rows import PackedRows
from rankwise.rankers.boosting.symmetric import Split, SymmetricModel, SymmetricRows, SymmetricTree, TreeGrowth
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from rankwise.rankers.boosting.tree_rows import Comparison, RowBlocks, RowMemory, TreeLevel, TreeRows

if TYPE_CHECKING:
    from rankwise.queries.passes.journal import Journal

Vector = NDArray[np.float64]
Wholes = NDArray[np.int64]
logger = logging.getLogger("rankwise")

# What a model keeps of a row between passes, in bytes: score, both derivatives, label, what the loss makes of it,
# weight, leaf, and whether it is drawn and learned from.
_OF_A_ROW = 5 * 8 + 2 + 1 + 1

# More trees than there can be.
_UNKNOWN = 1 << 62

Start = Callable[[Queries], Any]


@dataclass(frozen=True)
class LinearStart:
    """Scores that trees start from, by weights on features.

    Attributes
    ----------
    coef : ndarray of shape (n_features,)
        The weights.
    """

    coef: Vector

    def __call__(self, queries: Queries) -> Vector:
        """The scores of some queries whose rows are grouped."""
        return linear_scores(queries.X, self.coef, 1)


@dataclass(frozen=True)
class EnsembleStart:
    """Scores that trees start from, by trees that were grown before.

    Attributes
    ----------
    ensemble : TreeEnsemble
        The trees.
    """

    ensemble: TreeEnsemble

    def __call__(self, queries: Queries) -> Vector:
        """The scores of some queries whose rows are grouped."""
        return self.ensemble.scores_while_grown(queries.X, 1)


def start_of_blocks(coef: Vector | None, earlier: TreeEnsemble | None) -> "Start | None":
    """What trees start from: earlier trees, or weights, or nothing."""
    if earlier is not None:
        return EnsembleStart(earlier)
    return None if coef is None else LinearStart(coef)


@dataclass(frozen=True)
class PartedDerivatives:
    """The loss of a model and its queries, whose :class:`Derivatives` every range makes.

    Attributes
    ----------
    loss : Loss
        The loss.
    joined : JoinedParts
        The queries.
    weight : ndarray of shape (n_queries,), or None
        Their weights; None where all are 1.
    constant : float or None
        The second derivative of every document, for a loss that declares no curvature; None until it is known.
    sigmas : tuple of float
        Decreasing widths, see :class:`~rankwise.rankers.boosting.annealed.AnnealedDerivatives`; none: it does not
        change.
    trees : int
        The number of trees that the widths share.
    """

    loss: Loss
    joined: JoinedParts
    weight: Vector | None
    constant: float | None = None
    sigmas: tuple[float, ...] = ()
    trees: int = 1

    @classmethod
    def of(cls, loss: Loss, joined: JoinedParts) -> "PartedDerivatives":
        """The loss on these queries, or an error if its noise depends on where a document stands among all."""
        if loss.noisy:
            raise DataError(
                f"{loss!r} does not run on Parts: its noise is a function of the place of a document among all; pass "
                "another loss=, or queries in memory"
            )
        return cls(loss, joined, joined.weight)

    def without(self, rows: Wholes) -> "PartedDerivatives":
        """The same with a weight of 0 for the queries of these rows."""
        weight = self.joined.query_weight.copy()
        weight[np.unique(np.searchsorted(self.joined.start, rows, side="right") - 1)] = 0.0
        return replace(self, weight=weight)

    def over(self, sigmas: Sequence[float], trees: int) -> "PartedDerivatives":
        """The same, annealed over so many trees."""
        return replace(self, sigmas=tuple(float(one) for one in sigmas), trees=trees)

    @property
    def last_change(self) -> int:
        """The number of trees from which on the loss stays what it is."""
        return begins_of(self.sigmas, self.trees)[-1] if self.sigmas else 0

    def before_tree(self, rows: "PartedRows", iteration: int) -> "PartedDerivatives":
        """What tree ``iteration`` is grown on."""
        loss = loss_before(self.loss, self.sigmas, self.trees, iteration, rows.variance) if self.sigmas else None
        if loss is None and self.constant is not None:
            return self
        loss = self.loss if loss is None else loss
        return replace(self, loss=loss, constant=1.0 if loss.curvature is not None else rows.typical_slope(loss))


def derivatives_of(loss: Loss, together: Any, n_jobs: int | None) -> Any:
    """The derivatives of a loss of all queries, which are in memory or in parts."""
    if isinstance(together, JoinedParts):
        return PartedDerivatives.of(loss, together)
    return Derivatives.of(loss, together, n_jobs)


# -------------------------------------------------------------------------------------------------------- in a worker

Grown = tuple[tuple[Comparison, ...], Vector]


class Message(NamedTuple):
    """What is asked of a range.

    Attributes
    ----------
    before : int
        The number of trees that the sent ones follow.
    trees : tuple of (comparisons, values)
        The trees that are sent.
    loss : Loss
        The loss.
    constant : float
        See :class:`PartedDerivatives`.
    what : str
        A method of :class:`RangeRows`.
    arguments : tuple
        What it takes.
    """

    before: int
    trees: tuple[Grown, ...]
    loss: Loss
    constant: float
    what: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class RangeJob(Job):
    """The rows of a model by range.

    Attributes
    ----------
    token : str
        What tells the model from others with the same queries and weights.
    files : tuple of BinnedFile
        The bins.
    start : ndarray of int64
        The offsets of the queries.
    loss : Loss
        The loss, as far as what it prepares from labels.
    depth, row_fraction : int and float
        How trees are grown.
    begin : tuple of (callable, JoinedParts), or None
        What computes the scores that trees are added to, and the documents that it takes.
    spills : bool
        Whether what is kept of the rows stands in files, because there is too little memory.
    """

    token: str
    files: tuple[BinnedFile, ...]
    start: Wholes
    loss: Loss
    depth: int
    row_fraction: float
    begin: "tuple[Start, JoinedParts] | None"
    spills: bool

    def prepare(self, queries: Queries, offset: int) -> "RangeRows":
        return RangeRows.of(self, queries, offset)

    def run(self, chunk: Chunk, prepared: "RangeRows", message: Message) -> Any:
        return prepared.answer(message)

    @property
    def title(self) -> str:
        return "trees"


@dataclass
class RangeRows:
    """A range of a model's rows, which follows the trees that it is told of.

    Attributes
    ----------
    job : RangeJob
        The model.
    queries : Queries
        The queries, without features.
    first : int
        The number of the first query.
    rows : TreeRows
        The rows.
    iteration : int
        The number of trees in their scores; more than there are while scores are computed, which may be interrupted.
    applied : int
        The number of splits of the next tree in their leaves; -1 where that is not known, or derivatives are not
        rounded yet.
    indispensable : bool
        True: without these rows, every pass would begin with all trees.
    """

    indispensable: ClassVar[bool] = True

    job: RangeJob
    queries: Queries
    first: int
    rows: TreeRows
    iteration: int = _UNKNOWN
    applied: int = -1
    lock: Any = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def of(cls, job: RangeJob, sizes: Queries, first: int) -> "RangeRows":
        """The rows of these queries, of which the first has this number."""
        files = [one for one in job.files if first <= one.first and one.last <= first + len(sizes)]
        pieces, labels, weights, row = [], [np.empty(0)], [np.empty(0)], 0
        opened = [one.open() for one in files]
        for (words, y, weight), file in zip(opened, files, strict=True):
            count = int(job.start[file.last] - job.start[file.first])
            pieces.append(RowBlocks.of(words, row, row + count))
            labels.append(y)
            weights.append(np.ones(count) if weight is None else weight)
            row += count
        weighted = any(weight is not None for _, _, weight in opened)
        queries = sizes._replace(
            y=np.asarray(opened[0][1]) if len(opened) == 1 else np.concatenate(labels),
            document_weight=np.concatenate(weights) if weighted else None,
        )
        derivatives = Derivatives.of(job.loss, queries, 1, constant=1.0)
        empty: Callable[[int, Any], NDArray[Any]] = np.empty
        if job.spills:
            empty = _Spilled(row * _OF_A_ROW + (1 << 12))
            derivatives = _in_file(derivatives, empty)
        learned = empty(row, np.uint8)
        learned[:] = 1 if derivatives.weight is None else derivatives.weight > 0
        memory = RowMemory.of(row, job.depth, empty)
        rows = TreeRows([pieces], derivatives, learned, empty(row, np.float64), memory, job.row_fraction)
        rows.offset = int(job.start[first])
        found = cls(job, sizes, first, rows)
        found._begin()
        return found

    @property
    def kept_bytes(self) -> int:
        """The bytes that count as kept: none of those in files."""
        return 0 if self.job.spills else len(self.rows.score) * _OF_A_ROW

    def answer(self, message: Message) -> Any:
        """The answer to a message; None if trees are lacking."""
        with self.lock:
            if self.iteration > message.before + len(message.trees):
                self._begin()
            if self.iteration < message.before:
                return None
            for asked, value in message.trees[self.iteration - message.before :]:
                self._add(asked, value)
            known = self.rows.derivatives
            lists = replace(known.lists, loss=message.loss)
            self.rows.derivatives = replace(known, lists=lists, constant=message.constant)
            return getattr(self, message.what)(*message.arguments)

    # ------------------------------------------------------------------------------------------- what trees ask

    def largest(self) -> tuple[float, float, int, int]:
        """(largest derivatives, rows with a curvature, rows that are learned from)."""
        found = self.rows.largest(self.iteration)
        self.applied = -1
        if self.job.spills:
            self.rows.slopes = None
        return *found, self.rows.n_learned

    def count(self, level: TreeLevel) -> tuple[int, Wholes, Wholes]:
        """Sums by group, leaf and bin."""
        depth = len(level.asked)
        if depth:
            self._follow(level, depth - 1)
        elif self.rows.slopes is None:
            self.rows.largest(self.iteration)
        self.applied = -1
        found = self.rows.count(level)
        self.applied = depth
        return found

    def close(self, level: TreeLevel) -> Wholes:
        """Sums by leaf."""
        depth = len(level.asked)
        if self.applied != depth:
            self._follow(level, depth - 1)
        self.applied = -1
        found = self.rows.close(level)
        self.applied = depth
        return found

    def scores(self, numbers: Wholes | None) -> Vector:
        """The scores of these queries, ascending; None for all."""
        if numbers is None:
            return self.rows.scores()
        own = numbers[slice(*np.searchsorted(numbers, [self.first, self.first + len(self.queries)]))] - self.first
        start = self.queries.start
        return np.concatenate([np.empty(0), *(self.rows.score[start[one] : start[one + 1]] for one in own.tolist())])

    def costs(self) -> bool:
        """Whether the loss of a query is above 0."""
        return bool(loss_lists(self.rows.derivatives.lists, self.rows.score, n_jobs=1)[0].any())

    def slopes(self) -> Vector:
        """The sizes of slopes at standard normal scores."""
        first = self.rows.offset
        lists = self.rows.derivatives.lists
        return np.abs(loss_lists(lists, normal_scores(first, first + len(self.rows.score)), n_jobs=1)[1])

    def squares(self) -> tuple[Vector, Vector]:
        """What the variance of scores within queries is made of."""
        derivatives = self.rows.derivatives
        return squares_within(derivatives.lists, self.rows.score, derivatives.weight)

    # ------------------------------------------------------------------------------------------- where they are

    def _begin(self) -> None:
        """The scores before the first tree."""
        self.iteration, self.applied, self.rows.slopes = _UNKNOWN, -1, None
        self.rows.score[:] = 0.0
        if self.job.begin is not None:
            scores, joined = self.job.begin
            row = 0
            for block in joined.blocks(self.first, self.first + len(self.queries)):
                self.rows.score[row : row + block.n_documents] = scores(block)
                row += block.n_documents
        self.iteration = 0

    def _add(self, asked: Sequence[Comparison], value: Vector) -> None:
        """Add a tree, whose splits are applied where they are not."""
        if asked and self.applied != len(asked):
            self.rows.memory.leaf[:] = 0
            self._apply(asked, len(asked))
        following, self.iteration = self.iteration + 1, _UNKNOWN
        self.rows.add(asked, value)
        self.iteration, self.applied, self.rows.slopes = following, -1, None

    def _follow(self, level: TreeLevel, depth: int) -> None:
        """Bring rows to a level of the tree under way, if they are not there."""
        if self.applied != depth:
            self.rows.largest(self.iteration)
            self.rows.pack(level)
            self._apply(level.asked, depth)
            self.applied = depth

    def _apply(self, asked: Sequence[Comparison], depth: int) -> None:
        """Apply splits to leaves; the sums that come with it are not used."""
        self.applied = -1
        for number in range(1, depth + 1):
            self.rows.close(
                TreeLevel(0, (1.0, 1.0), tuple(asked[:number]), np.zeros(0, np.uint8), np.zeros(0, np.int64))
            )


class _Spilled:
    """Arrays in a file that nobody else sees and that ends with them: the system writes them out when it has to.

    Parameters
    ----------
    size : int
        The bytes of all together.
    """

    def __init__(self, size: int) -> None:
        with tempfile.TemporaryFile(prefix="rankwise-trees-") as file:
            file.truncate(size)
            self._bytes, self._used = np.memmap(file, np.uint8, "r+", 0, (size,)), 0

    def __call__(self, count: int, dtype: Any) -> NDArray[Any]:
        """An array of unknown content."""
        size = count * np.dtype(dtype).itemsize
        found: NDArray[Any] = np.asarray(self._bytes[self._used : self._used + size]).view(dtype)
        self._used += -(-size // 64) * 64
        return found


def _in_file(derivatives: Derivatives, empty: Callable[[int, Any], Any]) -> Derivatives:
    """Derivatives whose arrays of numbers per row stand in memory of this kind."""

    def kept(array: Vector | None) -> Any:
        if array is None:
            return None
        copy = empty(len(array), np.float64)
        copy[:] = array
        return copy

    lists = derivatives.lists
    lists = replace(lists, label=kept(lists.label), value=kept(lists.value))
    return replace(derivatives, lists=lists, weight=kept(derivatives.weight))


@dataclass(frozen=True)
class TreeJob(Job):
    """A tree on the queries of a chunk alone, whose time tells what one on all will take.

    Attributes
    ----------
    loss : Loss
        The loss.
    depth, row_fraction : int and float
        How trees are grown.
    """

    loss: Loss
    depth: int
    row_fraction: float

    def prepare(self, queries: Queries, offset: int) -> SymmetricModel:
        growth = TreeGrowth(depth=self.depth, row_fraction=self.row_fraction)
        rows = SymmetricRows(PackedRows.of([queries], n_jobs=1), growth, 1)
        return rows.model(Derivatives.of(self.loss, queries, 1), 0, None, 1)

    def run(self, chunk: Chunk, prepared: SymmetricModel, *arguments: Any) -> tuple[()]:
        if prepared.shared.splittable:
            prepared.grow()
        return ()


# -------------------------------------------------------------------------------------------------------- at the client


@dataclass(eq=False)
class PartedRows:
    """The rows of a model in parts: see :class:`~rankwise.rankers.boosting.tree_rows.ModelRows`.

    Attributes
    ----------
    queries : ChunkedQueries
        The queries, whose chunks are the ranges.
    work : Work
        The ranges of the model, for passes.
    derivatives : PartedDerivatives
        The loss.
    n_jobs : int or None
        Number of threads, where threads compute.
    trees : list of (comparisons, values)
        The trees.
    sent : int
        The number of trees that ranges have been told of, unless their worker was lost.
    n_learned : int
        Number of rows that are learned from.
    """

    queries: RangedQueries
    work: Any
    derivatives: PartedDerivatives
    n_jobs: int | None
    trees: list[Grown] = field(default_factory=list)
    sent: int = 0
    n_learned: int = 0

    @classmethod
    def of(
        cls, shared: SymmetricRows, derivatives: PartedDerivatives, start: Start | None, n_jobs: int | None
    ) -> "PartedRows":
        """The rows of a model without trees."""
        parts, growth = shared.rows, shared.growth
        assert isinstance(parts, BinnedParts)
        joined, known = parts.joined, parts.queries
        sizes = QueryRanges(joined.start, parts.ranges(n_jobs), parts.n_documents * 4 * len(parts.feature))
        queries = RangedQueries(sizes, known.executor, derivatives.weight, derivatives.weight is not None)
        begin = None if start is None else (start, replace(joined, weight=None))
        job = RangeJob(
            secrets.token_hex(8),
            parts.files,
            joined.start,
            derivatives.loss,
            growth.depth,
            growth.row_fraction,
            begin,
            spills=_lacks_room(parts, sizes, n_jobs),
        )
        found = cls(queries, queries.work(job), derivatives, n_jobs)
        parts.models.add(found)
        return found

    def largest(self, iteration: int) -> tuple[float, float, int]:
        """See :class:`~rankwise.rankers.boosting.tree_rows.ModelRows`."""
        steepest, most, curved, learned = zip(*self._ask("largest"), strict=True)
        self.n_learned = sum(learned)
        return float(np.max(steepest)), float(np.max(most)), sum(curved)

    def count(self, level: TreeLevel) -> tuple[int, Wholes, Wholes]:
        """See :class:`~rankwise.rankers.boosting.tree_rows.ModelRows`."""
        bend, gradient, curvature = _added(self._ask("count", level))
        return bend, gradient, curvature

    def close(self, level: TreeLevel) -> Wholes:
        """See :class:`~rankwise.rankers.boosting.tree_rows.ModelRows`."""
        (sums,) = _added((one,) for one in self._ask("close", level))
        return np.asarray(sums)

    def add(self, asked: Sequence[Comparison], value: Vector) -> None:
        """See :class:`~rankwise.rankers.boosting.tree_rows.ModelRows`; ranges are told with the next question."""
        self.trees.append((tuple(asked), value))

    def scores(self, rows: Wholes | None = None) -> Vector:
        """See :class:`~rankwise.rankers.boosting.tree_rows.ModelRows`."""
        if rows is None:
            return self._joined("scores", None)
        start = self.queries.start
        owner = np.searchsorted(start, rows, side="right") - 1
        numbers, place = np.unique(owner, return_inverse=True)
        before = np.append(0, np.cumsum(start[numbers + 1] - start[numbers]))[place]
        return np.asarray(self._joined("scores", numbers)[before + rows - start[owner]])

    def variance(self) -> float:
        """The variance of scores within queries."""
        share, squares = zip(*self._ask("squares", inorder=True), strict=True)
        return mean_square(np.concatenate(share), np.concatenate(squares))

    def typical_slope(self, loss: Loss) -> float:
        """The mean size of slopes at standard normal scores."""
        self.derivatives = replace(self.derivatives, loss=loss)
        return typical(self._joined("slopes"))

    def refuse_stationary(self) -> None:
        """Raise an error if the loss is above 0 somewhere and its gradient is 0 everywhere at the start."""
        self.derivatives = self.derivatives.before_tree(self, 0)
        if not self.largest(0)[0] and any(self._ask("costs")):
            raise RankwiseError(STATIONARY.format(self.derivatives.loss))

    def _joined(self, what: str, *arguments: Any) -> Vector:
        return np.concatenate([np.empty(0), *self._ask(what, *arguments, inorder=True)])

    def _ask(self, what: str, *arguments: Any, inorder: bool = False) -> Iterator[Any]:
        """The answers of all ranges; ``inorder`` holds them back until they can be given in order."""
        answers = self._ask_each(what, arguments)
        return (one for _, one in (sorted(answers, key=lambda one: one[0]) if inorder else answers))

    def _ask_each(self, what: str, arguments: tuple[Any, ...]) -> Iterator[tuple[int, Any]]:
        """(number of a range, its answer)."""
        numbers: Sequence[int] = range(len(self.queries.chunks))
        for before in dict.fromkeys((self.sent, 0)):
            loss, constant = self.derivatives.loss, self.derivatives.constant
            message = Message(before, tuple(self.trees[before:]), loss, constant or 1.0, what, arguments)
            answers = self.queries.map(self.work, message, n_jobs=self.n_jobs, only=numbers)
            behind = []
            for number, answer in zip(numbers, answers, strict=True):
                if answer is None:
                    behind.append(number)
                else:
                    yield number, answer
            numbers = behind
            if not behind:
                break
        self.sent = len(self.trees)


def _lacks_room(parts: BinnedParts, sizes: QueryRanges, n_jobs: int | None) -> bool:
    """Whether the rows of another model do not fit into what workers may keep."""
    executor = parts.queries.executor
    limit = getattr(executor, "memory_limit", None)
    if limit is None:
        return False
    stores, own = 1, parts.n_documents
    if executor.name != "threads":  # each worker keeps its own ranges
        stores = executor.workers(n_jobs)
        largest = max((int(sizes.start[last] - sizes.start[first]) for first, last in sizes.ranges), default=0)
        own = largest * -(-len(sizes.ranges) // stores)
    return bool(own * _OF_A_ROW * (len(parts.models) + 1) > limit // stores)


def _added(answers: Iterator[tuple[Any, ...]]) -> list[Any]:
    """The sums of integers, added as they come."""
    sums = list(next(answers))
    for answer in answers:
        for place, one in enumerate(answer):
            sums[place] += one
    return sums


@dataclass
class PartedModel(SymmetricModel):
    """A sum of trees under way on data sets in parts, each recorded in the checkpoint if there is one."""

    @property
    def _own(self) -> PartedRows:
        assert isinstance(self.rows, PartedRows)
        return self.rows

    def grow(self) -> None:
        """Add a tree, from the checkpoint if it is there."""
        rows, began = self._own, time.monotonic()
        rows.derivatives = rows.derivatives.before_tree(rows, self.iteration)
        journal, key = self._journal, self._key()
        found = None if journal is None else journal.get(key)
        tree = self.next_tree() if found is None else _from_arrays(found)
        if journal is not None and found is None:
            journal.add(key, _as_arrays(tree))
        self.append(tree)
        parts = self.shared.rows
        assert isinstance(parts, BinnedParts)
        seconds = time.monotonic() - began
        speed = f"{parts.n_documents / max(seconds, 1e-9) / 1e6:.2f} million rows/s"
        remark(f"tree {self.iteration:,}, {speed}")
        if parts.queries.account.verbose:
            how = "from the checkpoint" if found is not None else f"in {seconds:.2f} s, {speed}"
            logger.info("tree %d: %d levels %s", self.iteration, len(tree.splits), how)

    @property
    def _journal(self) -> "Journal | None":
        parts = self.shared.rows
        assert isinstance(parts, BinnedParts)
        return parts.queries.account.journal

    def _key(self) -> bytes:
        """The key of the next tree in a checkpoint, which the data set and the parameters of the ranker are part of."""
        if "_begins" not in self.__dict__:
            first = self._own.derivatives
            about = first.loss, first.weight, first.sigmas, first.trees, self.start, self.shared.growth, self.seed
            self.__dict__["_begins"] = digest_of(about)
        return hashlib.blake2b(self.__dict__["_begins"] + str(self.iteration).encode(), digest_size=16).digest()


def _as_arrays(tree: SymmetricTree) -> tuple[NDArray[Any], ...]:
    """A tree for a checkpoint."""
    splits = np.array([(one.feature, one.kind, one.cut, one.holes) for one in tree.splits], np.float64).reshape(-1, 4)
    asked = np.array(tree.asked, np.int64).reshape(-1, 4)
    return splits, np.concatenate([np.empty(0), *tree.gains]), tree.value, tree.documents, asked


def _from_arrays(found: tuple[Any, ...]) -> SymmetricTree:
    """The tree of a checkpoint."""
    splits, gains, value, documents, asked = found
    ends = (1 << np.arange(len(splits))).cumsum()
    return SymmetricTree(
        tuple(Split(int(feature), int(kind), float(cut), bool(holes)) for feature, kind, cut, holes in splits),
        tuple(np.split(gains, ends[:-1])) if len(splits) else (),
        value,
        documents,
        tuple(tuple(one) for one in asked.tolist()),
    )
