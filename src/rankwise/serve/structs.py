"""What goes over the wire: every request and answer as a msgspec struct, the one module that knows msgspec's types.

Decoders check types, lengths and unknown fields while they read, so the rest of the service never sees a malformed
body. :mod:`rankwise.serve.operations` makes the description of the interface from the same classes.
"""

from typing import Annotated, Any, Literal

from rankwise._extras import require

require("msgspec")  # missing: one sentence that names the extra

import msgspec  # noqa: E402
from msgspec import Meta, Struct  # noqa: E402

LONGEST_ID = 200
MOST_DOCUMENTS = 100_000
MOST_EVENTS = 10_000

Id = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID, description="Any text that identifies one thing.")]
# in Python $ alone also matches before a line feed at the end, and \Z is unknown to the regular expressions of OpenAPI
Name = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$(?!\n)", description="Letters, digits, . _ and -")
]
Seq = Annotated[int, Meta(ge=0, le=2**53, description="A place in the log: versions are such places.")]
Grade = Annotated[float, Meta(ge=0, le=1e6, description="Relevance; 0 is not relevant.")]


class RequestBody(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A body that a client sends: an unknown field is refused by name."""


class Item(RequestBody):
    """One document with named features."""

    id: Id
    features: dict[str, float]


class RankRequest(RequestBody):
    """Documents to rank: ``ids`` with the matrix ``x``, or ``items`` with features by name.

    With ``cut``, the answer holds only the documents that the cut-off of the model keeps.
    """

    ids: Annotated[list[Id], Meta(max_length=MOST_DOCUMENTS)] | None = None
    x: Annotated[list[list[float]], Meta(max_length=MOST_DOCUMENTS)] | None = None
    items: Annotated[list[Item], Meta(max_length=MOST_DOCUMENTS)] | None = None
    model: Name | None = None
    user: Id | None = None
    min_seq: Seq | None = None
    explain: bool = False
    cut: bool = False


class RankedItem(Struct, omit_defaults=True, gc=False):
    """One document of a ranking, the best first."""

    id: str
    score: float
    adds: dict[str, float] | None = None


class RankAnswer(Struct, omit_defaults=True):
    """A ranking; ``logged`` is False where the disk is full, and feedback must then bring its features."""

    ranking: str
    model: str
    version: int
    items: list[RankedItem]
    logged: bool = True


class Feedback(RequestBody):
    """What became of a ranking: complete grades, or clicks that a window or a ``close`` completes.

    Grades follow the order of the ids of the request for the ranking, or come by id; a document that is left out has
    grade 0. ``ids`` and ``x`` make the event independent of what the service remembers.
    """

    id: Id
    ranking: Id
    grades: (
        Annotated[list[Grade], Meta(max_length=MOST_DOCUMENTS)]
        | Annotated[dict[str, Grade], Meta(max_length=MOST_DOCUMENTS)]
        | None
    ) = None
    clicks: Annotated[list[Id], Meta(max_length=MOST_DOCUMENTS)] | None = None
    model: Name | None = None
    ids: Annotated[list[Id], Meta(max_length=MOST_DOCUMENTS)] | None = None
    x: Annotated[list[list[float]], Meta(max_length=MOST_DOCUMENTS)] | None = None


class FeedbackAnswer(Struct, omit_defaults=True):
    """Where the event stands in the log, and whether it is new; in an array also why one was refused."""

    seq: int | None
    new: bool
    id: str | None = None
    error: str | None = None
    status: int | None = None


class CloseRequest(RequestBody):
    """An explicit end of a ranking's clicks; the id makes retries harmless and has a default."""

    id: Id | None = None


class ChangeRequest(RequestBody):
    """A change of a model: ``version`` is the place in the log whose weights are meant; None is the newest."""

    id: Id | None = None
    version: Seq | None = None
    note: Annotated[str, Meta(max_length=500)] = ""


class ExperimentRequest(RequestBody):
    """Two models side by side on the requests for ``model``.

    ``shadow`` scores with both and shows the first; ``split`` shows the challenger to a share of the users;
    ``interleave`` shows a team draft of both.
    """

    name: Name
    kind: Literal["shadow", "split", "interleave"]
    model: Name
    challenger: Name
    share: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    delta: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    id: Id | None = None


class IntervalAnswer(Struct):
    """A mean with an interval that holds simultaneously at all times."""

    n: int
    mean: float | None
    low: float
    high: float
    delta: float


class ExperimentAnswer(Struct):
    """The read-out of an experiment: the difference, the better model once that is ``decided``, and what it is about.

    ``scope`` has the population, the unit, when the read-out may be read, and the choices after which it still holds.
    """

    name: str
    kind: str
    model: str
    challenger: str
    running: bool
    since: int
    difference: IntervalAnswer
    decided: str | None
    statement: str
    scope: dict[str, str]
    preconditions: list[str]


class ModelAnswer(Struct):
    """One model of the service."""

    name: str
    ranker: str
    features: list[str] | int
    learns: bool
    frozen: bool
    default: bool
    version: int
    published: int
    lists: int
    refused: int
    measure: str
    running: IntervalAnswer


class VersionAnswer(Struct):
    """A version that was recorded; every other place in the log is a version, too."""

    seq: int
    digest: str
    at: float
    note: str


class ChangeAnswer(Struct):
    """Where the change stands in the log."""

    seq: int
    new: bool


class BoundAnswer(Struct):
    """One bound, with its statement, and whether its preconditions are known to be met."""

    name: str
    of: str
    value: float
    statement: str
    applies: bool | None
    preconditions: list[str]


class MeasuredAnswer(Struct, kw_only=True):
    """What was measured of a model's rankings; ``scope`` and ``preconditions`` are those of ``running``."""

    model: str
    measure: str
    running: IntervalAnswer
    scope: dict[str, str]
    preconditions: list[str]
    bounds: list[BoundAnswer]


class LedgerAnswer(MeasuredAnswer, kw_only=True):
    """The account of a model's run, with what theory allows; all of it may be read at any time.

    A point of the curve is (rounds, mistakes, cumulative loss, rounds on which the measure is defined, sum of the
    measure, bound on the mean risk).
    """

    seq: int
    lag: int
    rounds: int
    mistakes: int
    loss: float
    mean: float | None
    refused: int
    curve: list[list[float]]


class CertificateAnswer(MeasuredAnswer, kw_only=True):
    """What is guaranteed about what a model has shown."""

    version: int
    statement: str


class Problem(Struct):
    """Why a request was refused (RFC 9457)."""

    title: str
    status: int
    detail: str
    request: str
    retry: bool = False


Decoder: Any = msgspec.json.Decoder  # whose type would be that of each decoded value
Malformed, Invalid = msgspec.DecodeError, msgspec.ValidationError  # no JSON; JSON that is not the struct
encode = msgspec.json.Encoder().encode
pack = msgspec.msgpack.Encoder().encode  # any values as bytes from which they could be read: for digests
read_rank = Decoder(RankRequest).decode
read_feedback = Decoder(Feedback).decode
read_many_feedback = Decoder(Annotated[list[Feedback], Meta(max_length=MOST_EVENTS)]).decode
read_close = Decoder(CloseRequest).decode
read_change = Decoder(ChangeRequest).decode
read_experiment = Decoder(ExperimentRequest).decode
read_name = Decoder(Name).decode
read_any = Decoder(Any).decode
