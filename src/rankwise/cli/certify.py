"""``rankwise certify``: guarantees about a saved ranker or about scores, and the number of queries that a guarantee
needs.

A saved ranker gives its own certificate; scores from any source are certified by a hold-out alone. With
``--half-width`` or ``--difference`` the command plans how many judged queries are needed instead.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from rankwise.cli import reading
from rankwise.cli.options import argument, data_option, measure_option, model_option, output_option, plan_option
from rankwise.cli.wording import in_shell, show_certificate
from rankwise.errors import RankwiseError

NOT_CERTIFIED = 3  # exit code: the input is valid, and no bound below the trivial one follows from it


@reading.with_options
def certify(
    subject: Path | None = argument(
        None, "A saved ranker, a model of LightGBM, XGBoost or CatBoost, or scores of the hold-out from any source."
    ),
    train: Path | None = data_option(None, "The queries that the ranker was trained on."),
    holdout: Path | None = data_option(None, "Judged queries that were not used in training."),
    measure: str | None = measure_option(
        None, "For scores and models of other tools: nDCG@10 (default), AP, RR ...", "-m"
    ),
    delta: float = measure_option(0.05, "Probability with which a guarantee may fail."),
    cutoff: Path | None = model_option(None, "Certify the lists as this cut-off cuts them, by --holdout alone."),
    row_radius: float | None = measure_option(None, "Declared upper bound on the norm of future documents."),
    longest: int | None = measure_option(None, "Declared upper bound on the documents of a future query."),
    unverified: bool = measure_option(False, "Let the headline use constants that were not verified."),
    details: bool = output_option(False, "Also print every formula, constant and condition."),
    half_width: float | None = plan_option(None, "Number of queries for an interval of +- this width."),
    difference: float | None = plan_option(
        None, "Number of queries to detect this difference of two rankers (with --sd)."
    ),
    sd: float | None = plan_option(None, "The expected standard deviation."),
    power: float = plan_option(0.8, "Probability of detecting the difference."),
    as_json: reading.JsonOption = False,
    *,
    reads: dict[str, Any],
) -> None:
    """Certify a ranker or scores, or plan how many judged queries a guarantee needs.

    Queries of --holdout that also occur in training are reported. Whether they are copies or further draws of the same
    queries, the bounds hold, and are tighter without them. The exit code is 3 if there is no bound on future queries,
    or only a vacuous one.

    Example: rankwise certify model.rankwise --train train.txt --holdout test.txt

    Example: rankwise certify lightgbm.txt --holdout test.txt --train train.txt

    Example: rankwise certify other.scores --holdout test.txt -m nDCG@10

    Example: rankwise certify --half-width 0.03 --sd 0.25
    """
    # planning needs no data, and so takes no file
    if half_width is not None or difference is not None:
        if subject is not None:
            raise RankwiseError(
                f"--half-width and --difference plan queries that are not judged yet: leave out {subject}"
            )
        _plan({"half_width": half_width, "difference": difference, "sd": sd, "delta": delta, "power": power}, as_json)
        return
    if subject is None:
        raise RankwiseError("certify requires a saved ranker, scores with --holdout, --half-width or --difference")
    if not subject.exists():
        raise RankwiseError(f"{subject} does not exist: expected a saved ranker or scores")
    if reading.is_model(subject):
        ranker = reading.load_ranker(subject, measure)
        learned, held = (None if one is None else reading.read_for(ranker, one, reads) for one in (train, holdout))
        declared: dict[str, Any] = {"row_radius": row_radius, "longest": longest}
        if cutoff is not None:
            found = _of_cut_lists(ranker, held, ranker.measure, delta, cutoff)
        else:
            found = ranker.certificate(learned, held, delta, unverified=unverified, **declared)
    else:
        if holdout is None or train is not None:
            raise RankwiseError(f"{subject} is not a saved ranker; scores require --holdout, without --train")
        found = _of_scores(subject, holdout, measure or "nDCG@10", delta, reads, cutoff)
    if as_json:
        print(found.to_json())
    else:
        print(in_shell(f"{found.about}\n{found.summary()}"))
        show_certificate(found)
        if details:
            print(in_shell(found.details()))
    if found.headline is None or found.headline.vacuous:
        raise typer.Exit(NOT_CERTIFIED)


def _of_cut_lists(model: Any, held: Any, measure: Any, delta: float, cutoff: Path) -> Any:
    """Certify what a cut-off leaves of the lists of a ranker, or of scores."""
    from rankwise.evaluation.certificates import certify as certify_lists
    from rankwise.guarantees.cutoff import Cutoff

    if held is None:
        raise RankwiseError("--cutoff requires --holdout: lists that are cut are certified by a hold-out alone")
    return certify_lists(held, model, measure, delta=delta, cutoff=Cutoff.load(cutoff))


def _of_scores(
    path: Path, holdout: Path, measure: str, delta: float, reads: dict[str, Any], cutoff: Path | None
) -> Any:
    """Certify scores by the hold-out alone."""
    from rankwise.evaluation.certificates import certify as certify_scores

    queries, scores = reading.read_scored(holdout, path, reads, {})
    if cutoff is not None:
        found = _of_cut_lists(scores, queries, measure, delta, cutoff)
    else:
        found = certify_scores(queries, scores, measure, delta=delta)
    return replace(found, about=found.about.replace("scores", str(path), 1))


def _plan(asked: dict[str, Any], as_json: bool) -> None:
    """Print how many queries a planned guarantee needs."""
    import rankwise as rw

    plans = rw.guarantees.queries_needed(**asked)
    if as_json:
        print(json.dumps([plan.to_dict() for plan in plans]))
        return
    for plan in plans:
        print(plan)
