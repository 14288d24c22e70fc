"""What a guaranteed number is about: the population, the unit, when it may be read, and which choices it survives."""

from dataclasses import dataclass

from rankwise._tables import ShownAsFacts


@dataclass(frozen=True)
class Scope(ShownAsFacts):
    """The scope of a guarantee.

    Attributes
    ----------
    population : str
        What the number is about, of which the data are a sample.
    unit : str
        What is drawn: a query, a session, an impression, a user.
    read : str
        The moments at which the number may be read.
    choices : str
        The choices after which it still holds, and those after which it does not.

    Examples
    --------
    >>> scope = Scope("future queries of the same source", "query", "once", "none on these queries")
    >>> print(scope)
    about: future queries of the same source
    unit: query
    read: once
    choices: none on these queries
    """

    population: str
    unit: str
    read: str
    choices: str

    def __str__(self) -> str:
        return "\n".join(
            [f"about: {self.population}", f"unit: {self.unit}", f"read: {self.read}", f"choices: {self.choices}"]
        )

    def to_dict(self) -> dict[str, str]:
        """The scope as plain strings."""
        return {"population": self.population, "unit": self.unit, "read": self.read, "choices": self.choices}


ANY_TIME = "at any time, as often as you like"
_FUTURE = "future queries, drawn independently from the distribution of the {} queries"

# The scopes of bounds. The population of a certificate's row is narrower where its text says so: "with a relevant
# document", "of weight above 0".
TRAINING = Scope(
    "the training queries themselves; nothing is inferred about others",
    "query",
    ANY_TIME,
    "any: it is a fact about these weights and these queries",
)
OPTIMALITY_GAP = Scope(
    "the training objective, at these weights and at its minimum", "objective", ANY_TIME, "any: it is a fact"
)
UNIFORM = Scope(
    _FUTURE.format("training"),
    "query",
    "once, for a number of training queries that was fixed beforehand",
    "any choice of weights, by these queries too; not of the loss, the declared radius and length, or W_0",
)
ERM = Scope(
    _FUTURE.format("training"),
    "query",
    "once, for a number of training queries that was fixed beforehand",
    "none: the weights minimize the training loss over a ball, which was fixed beforehand like the loss",
)
EXPECTATION = Scope(
    _FUTURE.format("training") + "; on average over training samples, not for the one at hand",
    "query",
    "once, for a number of training queries that was fixed beforehand",
    "none by these queries: neither of lambda, the step, the loss nor the features' scale",
)
ROUNDS = Scope(
    "the rounds of one run, whatever their order and however they were made",
    "round",
    ANY_TIME,
    "any comparator, chosen afterwards too",
)
ITERATES = Scope(
    _FUTURE.format("run's") + "; the average over the weights of the rounds, each ranked before it was learned from",
    "round",
    "once, for a number of rounds that was fixed beforehand",
    "none that depends on later rounds; each query is shown once",
)
HOLDOUT = Scope(
    _FUTURE.format("hold-out") + "; of queries with equal content any number may be copies",
    "query",
    "once, for a hold-out whose size was fixed beforehand",
    "any choice of the ranker without these queries; K rankers or measures: delta / K for each",
)
SEQUENCE = Scope(
    "the mean that every value of the stream has, given the earlier ones",
    "value of the stream",
    ANY_TIME,
    "when to stop; not which values are reported",
)
PLAN = Scope(
    "samples of queries that are yet to be drawn, independently from one distribution",
    "query",
    "before any of these queries is judged",
    "none: the number is for one interval, or one comparison, named beforehand; it says how far it can be trusted",
)
APPROXIMATE = Scope(
    "future queries, drawn independently from the distribution of these queries; an approximation, not a guarantee",
    "query",
    "once",
    "none: the rankers and measures were named beforehand, or the tests corrected for their number",
)
