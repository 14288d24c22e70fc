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
