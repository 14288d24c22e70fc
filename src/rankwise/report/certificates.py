"""What is guaranteed about each ranker, as plain values: certificates of the first fold's models."""

from typing import Any

from rankwise._errors import RankwiseError
from rankwise.data.reuse import same_content
from rankwise.evaluation.compare_result import Comparison
from rankwise.guarantees._bound import Bound, Precondition
from rankwise.guarantees.certificate import COMPARED, Certificate, certify, holdout_claims, repeats_note
from rankwise.measures._base import Measure
from rankwise.rankers._base import Ranker
from rankwise.report.compact import rounded

DELTA = 0.05
_UNSEEN = "whoever made the scores neither learned from these lists nor chose by them"
_HOLDS = {True: "yes", None: "assumed", False: "not met"}
_MET = {True: "met", None: "assumed", False: "not met"}


def certificates(comparison: Comparison) -> list[dict[str, Any]]:
    """One for each ranker: its own where it can give one, else what the hold-out says about its scores."""
    found: list[dict[str, Any]] = []
    for name in comparison.rankers:
        model = comparison.models[name][0]
        learned_here = comparison.about["rankers"][name]["kind"] == "learned"
        try:
            if isinstance(model, Ranker):
                train = comparison.first.train if learned_here else None
                certificate = model.certificate(train, comparison.first.test, DELTA)
            else:
                certificate = _of_scores(comparison, name, known=learned_here)
        except RankwiseError as error:  # weights that differ, a measure without a largest value
            found.append({"ranker": name, "about": "", "summary": "", "rows": [], "notes": [str(error)]})
            continue
        found.append(
            {
                "ranker": name,
                "about": certificate.about,
                "summary": certificate.summary(),
                "rows": [_row(bound) for bound in certificate.rows],
                "folded": certificate.folded(),
                "notes": list(certificate.notes),
            }
        )
    return found


def _of_scores(comparison: Comparison, name: str, known: bool) -> Certificate:
    """Hold-out bounds for the first measure on the test part of the first fold, whoever made the scores."""
    title, first = comparison.titles[0], comparison.on_fold(comparison.results[name], 1)
    measure: Measure = first.measures[0]
    group = same_content(comparison.first.test)
    claims = holdout_claims(
        1 - first[title],
        of=f"1 - {title} on lists to come",
        unseen=Precondition(_UNSEEN, True if known else None),
        weight=first.weight,
        group=group,
    )
    distinct, about = len(set(group.tolist())), f"{name}, {measure.title}, {len(group):,} hold-out lists"
    return certify(
        claims, about=about, delta=DELTA, notes=[repeats_note(len(group), distinct)] if distinct < len(group) else []
    )


def _row(bound: Bound) -> dict[str, Any]:
    return {
        "kind": bound.kind or "",
        "what": bound.bounds,
        "sign": "\u2264" if bound.side == "at most" else "\u2265",
        "value": rounded(bound.value, 4),
        "compared": rounded(bound.terms[COMPARED], 4) if COMPARED in bound.terms else None,
        "name": bound.name,
        "vacuous": bound.vacuous,
        "applies": _HOLDS[bound.applies],
        "status": bound.status,
        "statement": bound.statement,
        "terms": {term: rounded(value, 4) for term, value in bound.terms.items()},
        "preconditions": [[one.sentence, _MET[one.met]] for one in bound.preconditions],
    }
