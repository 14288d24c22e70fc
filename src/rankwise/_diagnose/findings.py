"""The result of a diagnosis: findings in order of severity, plain facts, and a table of the features."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rankwise._tables import ShownAsFacts, Table, notebook_html, paragraph
from rankwise.queries.checks import plural

Severity = Literal["problem", "warning", "note"]
_ORDER = ("problem", "warning", "note")
_NAMED_AT_MOST = 10


@dataclass(frozen=True, slots=True)
class Finding(ShownAsFacts):
    """One observation about the data.

    Attributes
    ----------
    severity : {"problem", "warning", "note"}
        Whether results will be wrong, may be wrong, or neither.
    what : str
        What was found.
    where : tuple
        The features or queries concerned, at most 10 of them.
    advice : str
        What to do about it.
    unnamed : int
        How many more features or queries are concerned.
    columns : tuple of str
        The columns of a table that should be left out because of it.
    """

    severity: Severity
    what: str
    where: tuple[Any, ...]
    advice: str
    unnamed: int = 0
    columns: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, severity: Severity, what: str, where: Iterable[Any], advice: str, columns: Iterable[str] = ()
    ) -> "Finding":
        """Make a finding that names at most the first 10 places.

        Parameters
        ----------
        severity : {"problem", "warning", "note"}
            As the attribute.
        what : str
            As the attribute.
        where : iterable
            All features or queries concerned.
        advice : str
            As the attribute.
        columns : iterable of str, default=()
            As the attribute.

        Returns
        -------
        finding : Finding
            The finding.
        """
        places = tuple(where)
        more = max(0, len(places) - _NAMED_AT_MOST)
        return cls(severity, what, places[:_NAMED_AT_MOST], advice, more, tuple(columns))

    def places(self) -> str:
        """The places as one line: the names, and how many more there are.

        Returns
        -------
        places : str
            The line.
        """
        more = [f"and {self.unnamed:,} more"] if self.unnamed else []
        return ", ".join([*map(str, self.where), *more])


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of :func:`diagnose`.

    Attributes
    ----------
    findings : list of Finding
        The findings, the worst first.
    facts : dict
        Plain numbers: sizes, labels, counts of special queries.
    features : Table
        The table that :meth:`table` returns.
    """

    findings: list[Finding]
    facts: dict[str, Any]
    features: Table

    @classmethod
    def of(cls, findings: Iterable[Finding], facts: dict[str, Any], features: Table) -> "Diagnosis":
        """A diagnosis with its findings in order of severity."""
        return cls(sorted(findings, key=lambda finding: _ORDER.index(finding.severity)), facts, features)

    def table(self) -> Table:
        """The features: name, min, max, mean, zeros (share of documents) and constant (share of queries).

        A query counts as constant in a feature when its documents, two or more, all have the same value.

        Returns
        -------
        table : Table
            One row per feature.
        """
        return self.features

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values.

        Returns
        -------
        diagnosis : dict
            Ready for JSON where the query ids are.
        """
        return {
            "facts": self.facts,
            "findings": [asdict(finding) | {"where": list(finding.where)} for finding in self.findings],
            "features": self.features.to_dict(),
        }

    def __repr__(self) -> str:
        lines = [*_headline(self.facts), ""]
        for finding in self.findings:
            lines.append(f"{finding.severity.upper()}: {finding.what}")
            if finding.where:
                lines.append(f"    where: {finding.places()}")
            lines.append(f"    {finding.advice}")
        return "\n".join(lines if self.findings else [*lines, "nothing to remark"])

    def _repr_html_(self) -> str:
        """The HTML that notebooks show."""
        rows = ([one.severity, one.what, one.places(), one.advice] for one in self.findings)
        found = Table.of_rows(("severity", "what", "where", "advice"), rows)
        return notebook_html(paragraph(*_headline(self.facts)), found.html(), self.features.html())


def _headline(facts: dict[str, Any]) -> list[str]:
    """The most important facts, in two or three lines."""
    lines = [
        f"{plural(facts['queries'], 'query', 'queries')}, {plural(facts['documents'], 'document')}, "
        f"{plural(facts['features'], 'feature')}"
    ]
    sizes = facts["documents_per_query"]
    if sizes is not None:
        spread = f"median {sizes['median']:,.1f}, mean {sizes['mean']:,.1f}"
        lines.append(f"documents per query: {sizes['min']:,} to {sizes['max']:,}, {spread}")
    labels = facts["labels"]
    if labels is None:
        lines.append("labels: none")
    else:
        common = sorted(labels, key=lambda label: -labels[label])[:_NAMED_AT_MOST]
        shares = [f"{label}: {labels[label] / facts['documents']:.1%}" for label in labels if label in common]
        lines.append(f"labels: {', '.join(shares)}{' and others' if len(labels) > len(common) else ''}")
    return lines
