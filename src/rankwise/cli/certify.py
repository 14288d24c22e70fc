"""``rankwise certify``: what is guaranteed about a ranker or about scores, and how many queries a guarantee takes."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from rankwise._errors import RankwiseError
from rankwise.cli import reading
from rankwise.cli.wording import in_shell


@reading.with_options
def certify(
    subject: Annotated[
        Path | None, typer.Argument(help="A ranker that was saved, or scores of the hold-out, whoever made them.")
    ] = None,
    train: Annotated[Path | None, typer.Option(help="The lists that the ranker learned from.")] = None,
    holdout: Annotated[Path | None, typer.Option(help="Judged lists that nobody learned from or chose by.")] = None,
    measure: Annotated[
        str | None, typer.Option("--measure", "-m", help="For scores: nDCG@10 (default), AP, RR ...")
    ] = None,
    delta: Annotated[float, typer.Option(help="How often a guarantee may be wrong.")] = 0.05,
    row_radius: Annotated[
        float | None, typer.Option("--row-radius", help="Declared: no document to come is farther from 0 than this.")
    ] = None,
    longest: Annotated[int | None, typer.Option(help="Declared: no list to come is longer.")] = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="The headline may rest on constants that nobody checked.")
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Of the order in which betting takes the hold-out: choose it before looking.")
    ] = 0,
    details: Annotated[
        bool, typer.Option("--details", help="Also print every formula, constant and condition.")
    ] = False,
    half_width: Annotated[
        float | None, typer.Option("--half-width", help="Plan: queries for an interval of +- this.")
    ] = None,
    difference: Annotated[
        float | None,
        typer.Option("--difference", help="Plan: queries that tell two rankers apart by this (with --sd)."),
    ] = None,
    sd: Annotated[float | None, typer.Option("--sd", help="Plan: a guess of the standard deviation.")] = None,
    power: Annotated[float, typer.Option(help="Plan: how often the difference has to be found.")] = 0.8,
    as_json: reading.JsonOption = False,
    *,
    reads: dict[str, Any],
) -> None:
    """What is guaranteed about a ranker, or about scores; or how many queries a guarantee takes.

    Example: rankwise certify model.rankwise --train train.txt --holdout test.txt

    Example: rankwise certify lightgbm.scores --holdout test.txt -m nDCG@10

    Example: rankwise certify --half-width 0.03 --sd 0.25
    """
    if half_width is not None or difference is not None:
        if subject is not None:
            raise RankwiseError(f"a plan is about queries to be judged: leave out {subject}")
        _plan({"half_width": half_width, "difference": difference, "sd": sd, "delta": delta, "power": power}, as_json)
        return
    if subject is None:
        raise RankwiseError("certify takes a saved ranker, or scores with --holdout, or --half-width or --difference")
    if not subject.exists():
        raise RankwiseError(f"{subject} is not there: expected a saved ranker, or scores")
    if _is_ranker(subject):
        if measure is not None:
            raise RankwiseError("a ranker is certified for its own measure: leave out --measure")
        declared = {"row_radius": row_radius, "longest": longest, "random_state": seed}
        found = _of_ranker(subject, train, holdout, delta, unverified, declared, reads)
    else:
        if holdout is None or train is not None:
            raise RankwiseError(f"{subject} holds no ranker: scores are certified by --holdout alone")
        found = _of_scores(subject, holdout, measure or "nDCG@10", delta, seed, reads)
    if as_json:
        print(found.to_json())
        return
    print(in_shell(f"{found.about}\n{found.summary()}"))
    show(found)
    if details:
        print(in_shell(found.details()))


def _is_ranker(path: Path) -> bool:
    """Whether a file is one that rankwise wrote; scores are text."""
    from rankwise.data.anyfile import kind_of

    return kind_of(path) == "store"


def _of_ranker(
    path: Path,
    train: Path | None,
    holdout: Path | None,
    delta: float,
    unverified: bool,
    declared: dict[str, Any],
    settings: dict[str, Any],
) -> Any:
    from rankwise._api import load

    ranker = load(path)
    if not hasattr(ranker, "certificate"):
        raise RankwiseError(f"{path} holds {type(ranker).__name__}, and a certificate is for a ranker")
    settings = reading.for_rankers(settings, [ranker])
    lists = [None if one is None else reading.read_lists(one, settings) for one in (train, holdout)]
    return ranker.certificate(*lists, delta, unverified=unverified, **declared)


def _of_scores(path: Path, holdout: Path, measure: str, delta: float, seed: int, settings: dict[str, Any]) -> Any:
    from rankwise.data.fingerprints import same_content
    from rankwise.evaluation.evaluate import evaluate
    from rankwise.guarantees._bound import Precondition
    from rankwise.guarantees.certificate import certify as certify_claims
    from rankwise.guarantees.certificate import holdout_claims, repeats_note

    queries, scores = reading.read_scored(holdout, path, settings, {})
    result = evaluate(queries, scores, [measure])
    (title,) = result.titles
    group = same_content(queries)
    claims = holdout_claims(
        1 - result.per_query[title],
        of=f"1 - {title} on lists to come",
        unseen=Precondition("whoever made the scores neither learned from these lists nor chose by them"),
        weight=queries.weight,
        group=group,
        random_state=seed,
    )
    distinct, notes = len(set(group.tolist())), []
    if distinct < len(queries):
        notes.append(repeats_note(len(queries), distinct))
    about = f"{path}, {title}, {len(queries):,} hold-out lists"
    return certify_claims(claims, about=about, delta=delta, notes=notes)


def _plan(asked: dict[str, Any], as_json: bool) -> None:
    from rankwise.guarantees.holdout.planning import queries_needed

    plans = queries_needed(**asked)
    if as_json:
        print(json.dumps([plan.to_dict() for plan in plans]))
        return
    for plan in plans:
        print(plan)


def show(certificate: Any) -> None:
    """The table of a certificate, and its notes."""
    from rich.console import Console

    console = Console(highlight=False)
    table = certificate.table(vacuous=False)
    if len(table):
        console.print(table.rich())
    for note in (*filter(None, [certificate.folded()]), *certificate.notes):
        console.print(f"- {in_shell(note)}", markup=False)
