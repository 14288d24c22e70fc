"""``rankwise clicks``: inspect click logs, learn position models, value and learn rankers, read interleaving tests.

A log is a CSV file with one line per shown document, or the two files of OpenSearch User Behavior Insights. The library
is imported by the commands that use it.
"""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rankwise.cli import reading, wording
from rankwise.cli.options import argument, new_app, option
from rankwise.errors import DataError, RankwiseError
from rankwise.io.sources import plain_number

if TYPE_CHECKING:
    from rankwise.clicks.log import ClickLog
    from rankwise.clicks.propensities import Propensities
    from rankwise.queries.queries import Queries

app = new_app("clicks", "Click logs: bound the value of new rankers, learn from clicks, interleave.")

DOCUMENTS = option(..., "Candidates with features, query ids and document ids: CSV, LETOR ...", "-d")
TauOption = Annotated[
    float, typer.Option(help="Clip propensities below at this; choose it before you look at the clicks.")
]
DeltaOption = Annotated[float, typer.Option(help="Probability with which the bounds may fail.")]
CutoffOption = Annotated[int | None, typer.Option("--cutoff", "-k", min=1, help="Cut-off of DCG (default: the page).")]
DropOption = Annotated[
    bool, typer.Option("--drop-unknown", help="Leave out sessions with documents that are not candidates.")
]


def log_options(
    log: Path = argument(..., "The log: CSV with session, qid, docid, position, click; or JSON lines of ubi_queries."),
    events: Path | None = option(None, "UBI: JSON lines of ubi_events; the log is then ubi_queries."),
    action: list[str] | None = option(None, "UBI: an action_name that is a click; may be repeated."),
    version: str | None = option(None, "UBI: entry of query_attributes that names the ranker.", "--version-attribute"),
    depth: int | None = option(None, "UBI: hits that a page shows (default: all).", min=1),
) -> "Callable[[], Iterator[ClickLog]]":
    """Return what reads the log, block by block, from its beginning."""
    from rankwise.clicks.log import ClickLog
    from rankwise.clicks.reading import iter_ubi

    if events is None:
        if action or version or depth:
            raise RankwiseError("--action, --version-attribute and --depth require --events FILE")
        return lambda: ClickLog.iter_csv(log)
    settings: dict[str, Any] = {"clicks": tuple(action)} if action else {}
    return lambda: iter_ubi(log, events, version=version, depth=depth, **settings)


def model_options(
    propensities: Path | None = option(
        None, 'Position model: a file of clicks propensities, or {"theta": [1, 0.5, 0.33]}.', "-p"
    ),
    theta: str | None = option(None, "Position model as numbers, 1,0.5,0.33, which are taken as is."),
) -> "Propensities":
    """Return the position model."""
    from rankwise.clicks.propensities import Propensities, given

    if (propensities is None) == (theta is None):
        raise RankwiseError("pass the position model as either --propensities FILE or --theta 1,0.5,...")
    if propensities is not None:
        return Propensities.load(propensities)
    numbers = [plain_number(number.strip()) for number in str(theta).split(",")]
    if None in numbers:
        raise RankwiseError(f"--theta must be numbers separated by commas, got {theta!r:.60}")
    return given([number for number in numbers if number is not None])


with_log, with_model = reading.share(log_options, "blocks"), reading.share(model_options, "position_model")


@app.command("inspect")
@with_log
def inspect_log(as_json: reading.JsonOption = False, *, blocks: "Callable[[], Iterator[ClickLog]]") -> None:
    """Count sessions, clicks and positions, and show what looks wrong.

    Example: rankwise clicks inspect log.csv
    """
    from rankwise.clicks.checks import click_rates, inspect

    found = _read_log(blocks)
    tables = {"checks": inspect(found), "click rates": click_rates(found)}
    if as_json:
        print(json.dumps({name: table.to_dict() for name, table in tables.items()}))
        return
    print(found)
    for table in tables.values():
        _show(table)
    print("The click rate is not a propensity: it mixes position and relevance.")


@app.command()
@with_log
def propensities(
    out: Path = option(..., "The JSON file to write.", "-o"),
    how: Literal["swaps", "harvest", "click-rate"] = option(
        "swaps", "From randomized swaps, or from rankers that showed the same documents elsewhere."
    ),
    delta: DeltaOption = 0.05,
    png: Path | None = option(None, "Also draw them into this PNG (extra: plot)."),
    as_json: reading.JsonOption = False,
    *,
    blocks: "Callable[[], Iterator[ClickLog]]",
) -> None:
    """Learn how likely each position is examined, with bounds.

    The file is JSON: {"theta": [1, 0.5, 0.33], "low": [...], "high": [...], ...}, position 1 first; theta is enough.

    Example: rankwise clicks propensities swaps.csv --out positions.json
    """
    from rankwise._tables import Table
    from rankwise.clicks.propensities import by_click_rate, by_swaps, harvest

    learn: Any = {"swaps": by_swaps, "harvest": harvest, "click-rate": by_click_rate}[how]
    log = _read_log(blocks)
    found = learn(log) if how == "click-rate" else learn(log, delta=delta)
    if png is not None:
        from rankwise._figures import save_png

        save_png(found.plot(), png)
    found.save(out)
    if as_json:
        print(json.dumps({name: value for name, value in found.to_dict().items() if name != "sessions"}))
        return
    _show(Table({"position": range(1, len(found) + 1), "low": found.low, "theta": found.theta, "high": found.high}))
    kind = "asymptotic in queries (bootstrap)" if found.asymptotic else "exact (betting)"
    print(f"relative to position 1; bounds {kind}, simultaneously with {100 * (1 - delta):g}% confidence: {out}")
    print(found.scope)


def _value_command(name: str, text: str) -> Callable[..., None]:
    """The command that calls ``clicks.value`` or ``clicks.gain``, which take the same options."""

    @with_log
    @with_model
    @reading.with_options
    def command(
        model: list[Path] = option(
            ..., "A saved ranker, a TREC run, or CSV of qid, docid, rank; may be repeated.", "-m"
        ),
        documents: Path = DOCUMENTS,
        tau: TauOption = 0.1,
        delta: DeltaOption = 0.05,
        cutoff: CutoffOption = None,
        drop: DropOption = False,
        as_json: reading.JsonOption = False,
        *,
        blocks: "Callable[[], Iterator[ClickLog]]",
        position_model: "Propensities",
        reads: dict[str, Any],
    ) -> None:
        from rankwise.clicks.values import gain, value

        rankings = {str(path): _ranking(path) for path in model}
        known: dict[Any, Queries] = {}

        def sessions(ranking: Any) -> "Iterator[ClickLog]":
            """The log block by block, which may be larger than memory, joined with what the ranking scores."""
            own = ranking if hasattr(ranking, "predict") else None
            if own not in known:
                known[own] = _candidates(documents, reads, [] if own is None else [own])
            candidates = known[own]
            for block in blocks():
                yield block.join(candidates, unknown="drop" if drop else "error")

        # several rankers share what the bounds of the propensities leave of delta
        paid = position_model.delta_high + (position_model.delta_low if name == "gain" else 0.0)
        each = paid + (delta - paid) / len(rankings) if delta > paid else delta
        settings: dict[str, Any] = {"tau": tau, "delta": each, "k": cutoff}
        function = {"value": value, "gain": gain}[name]
        found = {path: function(sessions(one), one, position_model, **settings) for path, one in rankings.items()}
        if as_json:
            print(json.dumps({path: one.to_dict() for path, one in found.items()}))
            return
        for path, one in found.items():
            print(f"{path}\n{one.summary()}")

    command.__doc__ = text
    return command


app.command("value")(
    _value_command(
        "value",
        """Value rankers from the log of another one: an estimate, and a bound that holds at any number of sessions.

        The sessions must not be those that the ranker or the position model was learned from. Candidates are read by
        the columns that the ranker remembers. The position model is JSON: {"theta": [1, 0.5, 0.33]}, position 1 first.

        Example: rankwise clicks value log.csv -m model.rankwise -d candidates.csv -p positions.json
        """,
    )
)
app.command("compare")(
    _value_command(
        "gain",
        """Compare rankers with the logged one: how much more each is worth, at least.

        Example: rankwise clicks compare log.csv -m new.rankwise -d candidates.csv -p positions.json
        """,
    )
)


@app.command()
@with_log
@with_model
@reading.with_options
def learn(
    documents: Path = DOCUMENTS,
    out: Path = option(..., "The file of the ranker.", "-o"),
    ranker: Literal["ridge", "hinge", "softmax"] = option("ridge", "Loss to minimize, linear in the clicks."),
    logged: Path | None = option(
        None, "The logged linear ranker: learn near it, and replace it only if the gain is certified.", "--safe"
    ),
    alpha: float | None = option(None, "Penalty of hinge and softmax (default 0.01)."),
    tau: TauOption = 0.1,
    delta: DeltaOption = 0.05,
    cutoff: CutoffOption = None,
    drop: DropOption = False,
    seed: reading.SeedOption = 0,
    as_json: reading.JsonOption = False,
    *,
    blocks: "Callable[[], Iterator[ClickLog]]",
    position_model: "Propensities",
    reads: dict[str, Any],
) -> None:
    """Learn a ranker from clicks over propensities, alone or safely near the logged one.

    With --safe, half of the sessions are held out for the certificate. If no gain is certified, the logged ranker is
    written.

    Example: rankwise clicks learn log.csv -d candidates.csv -p positions.json -o new.rankwise
    """
    from rankwise.clicks.learning import safe_ranker
    from rankwise.losses.given_relevance import GivenSoftmax, PropensityHinge
    from rankwise.rankers.linear.loss_ranker import LossRanker
    from rankwise.rankers.linear.ridge import RidgeRanker

    base = None if logged is None else reading.load_ranker(logged)
    candidates = _candidates(documents, reads, [] if base is None else [base])
    sessions = _read_log(blocks).join(candidates, unknown="drop" if drop else "error")
    loss = PropensityHinge() if ranker == "hinge" else GivenSoftmax()
    if base is not None:
        # a ridge has no ranker to stay near, the softmax stands in for it
        safe = safe_ranker(sessions, base, position_model, tau=tau, loss=loss, delta=delta, k=cutoff, random_state=seed)
        safe.model.save(out)
        if as_json:
            print(json.dumps({"certified": safe.certified, "gain": safe.gain.to_dict(), "path": safe.path.to_dict()}))
        else:
            _show(safe.path)
            print(f"{safe.summary()}\n{out}")
        return
    k = cutoff or len(position_model)
    measure = f"DCG(dcg='log2')@{k}"
    if ranker == "ridge":
        if alpha is not None:
            raise RankwiseError(
                "--alpha does not apply to ridge, which selects its penalty by cross-validation over queries"
            )
        learner: Any = RidgeRanker(measure, target="labels", balanced=False, random_state=seed)
    else:
        learner = LossRanker(loss, measure=measure, alpha=0.01 if alpha is None else alpha, random_state=seed)
    learner.fit(sessions.with_propensities(position_model, tau=tau)).save(out)
    summary = {"ranker": learner.name, "sessions": len(sessions), "alpha": float(learner.alpha_), "out": str(out)}
    print(json.dumps(summary) if as_json else f"{learner.name} learned from {len(sessions):,} sessions: {out}")
    if not as_json:
        print("before you use it, value it on other sessions: rankwise clicks compare")


@app.command()
@reading.with_options
def interleave(
    impressions: Path | None = argument(None, "CSV: impression, team (a or b), click; one line per shown document."),
    plan: float | None = option(None, "Plan: number of impressions to detect a mean credit of this size."),
    ties: float = option(0.5, "Plan: share of impressions without a winner."),
    power: float = option(0.8, "Plan: probability of deciding by then."),
    a: Path | None = option(None, "Write pages: the first saved ranker."),
    b: Path | None = option(None, "Write pages: the second saved ranker."),
    documents: Path | None = option(None, "Write pages: the candidates, one impression per query.", "-d"),
    out: Path | None = option(None, "Write pages: the CSV file.", "-o"),
    shown: int = option(10, "Write pages: documents on a page.", min=1),
    delta: DeltaOption = 0.05,
    png: Path | None = option(None, "Also draw the sequence into this PNG (extra: plot)."),
    seed: reading.SeedOption = 0,
    as_json: reading.JsonOption = False,
    *,
    reads: dict[str, Any],
) -> None:
    """Evaluate an interleaving test at any time, plan one, or write the interleaved pages of two rankers.

    Example: rankwise clicks interleave impressions.csv

    Example: rankwise clicks interleave --plan 0.1

    Example: rankwise clicks interleave --a old.rankwise --b new.rankwise -d candidates.csv -o pages.csv
    """
    from rankwise.clicks.preferences import impressions_needed, preference

    asked = [impressions is not None, plan is not None, a is not None or b is not None]
    if sum(asked) != 1:
        raise RankwiseError("interleave requires one of a file of impressions, --plan, or --a with --b")
    if plan is not None:
        found_plan = impressions_needed(plan, ties=ties, delta=delta, power=power, random_state=seed)
        print(json.dumps(found_plan.to_dict()) if as_json else found_plan)
        return
    if impressions is None:
        _write_pages(a, b, documents, out, shown, seed, reads)
        return
    found = preference(_credits(impressions), delta=delta)
    if png is not None:
        from rankwise._figures import save_png

        save_png(found.plot(), png)
    print(json.dumps(found.to_dict()) if as_json else found.summary())


# -------------------------------------------------------------------------------------------------------------- files


def _read_log(blocks: "Callable[[], Iterator[ClickLog]]") -> "ClickLog":
    from rankwise.clicks.log import ClickLog

    return ClickLog.concat(list(blocks()))


def _candidates(documents: Path, reads: dict[str, Any], rankers: "Sequence[Any]" = ()) -> "Queries":
    """Candidates with document ids, by the columns that saved rankers remember; labels are not needed."""
    from rankwise.features.judged import open_table
    from rankwise.io.any_file import kind_of

    known = dict(reads)
    built = [one for one in rankers if reading.raw_table_for(one, documents) is not None]
    if kind_of(documents) == "table":
        remembered = built[0].features_.roles_ if built else {}
        if remembered.get("docid") is None:
            known.setdefault("docid", "docid")
        if "label" not in known and not built:
            table = open_table(documents)
            known["label"] = "label" if table is not None and "label" in table.names else None
    if built:
        found = reading.read_for(built[0], documents, known, judged=False)
    else:
        found = reading.read_queries(documents, reading.for_rankers(known, rankers) if rankers else known)
    if found.docid is None:
        raise DataError(
            f"{documents} has no document ids: pass --docid, the column that the docid of the log refers to"
        )
    return found


def _ranking(path: Path) -> Any:
    """A saved ranker, or lists of documents: a TREC run, or CSV with qid, docid and rank."""
    if reading.is_model(path):
        return reading.load_ranker(path)
    if not path.is_file():
        raise DataError(f"{path} does not exist: expected a saved ranker, a TREC run, or CSV with qid, docid, rank")
    lists: dict[str, list[tuple[float, str]]] = {}
    for query, document, place in _read_ranks(path) if path.suffix == ".csv" else _read_run(path):
        lists.setdefault(query, []).append((place, document))
    # equal places stay in the order of the file
    return {
        query: [document for _, document in sorted(found, key=lambda one: one[0])] for query, found in lists.items()
    }


def _read_run(path: Path) -> Iterator[tuple[str, str, float]]:
    from rankwise.io.trec import read_run

    run = read_run(path)
    for query, document, score in zip(run.qid, run.docid, run.score.tolist(), strict=True):
        yield str(query), str(document), -score


def _read_ranks(path: Path) -> Iterator[tuple[str, str, float]]:
    for place, query, document, rank in _cells(path, ("qid", "docid", "rank")):
        try:
            yield query, document, float(rank)
        except ValueError:
            raise DataError(f"{place}: rank must be a number, got {rank!r:.40}") from None


def _cells(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The place of every record of a CSV file, and its cells in these columns."""
    from rankwise.io.tables.csv import open_csv

    with open_csv(path) as text:
        missing = [name for name in columns if name not in text.names]
        if missing:
            raise DataError(f"{path} must have the columns {', '.join(columns)}, got none called {', '.join(missing)}")
        at = [text.names.index(name) for name in columns]
        for line, record in text.records():
            yield text.places.at(line), *(record[place] for place in at)


def _credits(path: Path) -> list[float]:
    """The credit of every impression, in the order of the file."""
    from rankwise.clicks.preferences import credits

    pages: dict[str, list[tuple[int, bool]]] = {}
    for place, impression, team, click in _cells(path, ("impression", "team", "click")):
        if team.strip().lower() not in ("a", "b") or click.strip() not in ("0", "1"):
            raise DataError(f"{place}: team must be a or b and click 0 or 1, got {team!r:.40} and {click!r:.40}")
        pages.setdefault(impression, []).append((int(team.strip().lower() == "b"), click.strip() == "1"))
    return [float(credits([team for team, _ in page], [click for _, click in page])) for page in pages.values()]


def _write_pages(
    a: Path | None, b: Path | None, documents: Path | None, out: Path | None, shown: int, seed: int, reads: Any
) -> None:
    from rankwise._files import writing
    from rankwise.clicks.preferences import TeamDraft

    if a is None or b is None or documents is None or out is None:
        raise RankwiseError("writing interleaved pages requires --a, --b, --documents and --out")
    rankers = [reading.load_ranker(one) for one in (a, b)]
    draft = TeamDraft(*rankers, k=shown, seed=seed)
    candidates = _candidates(documents, reads, rankers)
    assert candidates.docid is not None
    ids = list(candidates.docid)
    with writing(out) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["impression", "position", "docid", "team"])
        for number, name in enumerate(candidates.names()):
            page = draft.page(candidates[number], impression=name)
            rows = candidates.rows[candidates.start[number] : candidates.start[number + 1]]
            for position, (row, team) in enumerate(zip(page.rows.tolist(), page.team.tolist(), strict=True), start=1):
                writer.writerow([name, position, ids[rows[row]], "ab"[team]])
    print(f"{len(candidates):,} pages: {out}")


def _show(table: Any) -> None:
    wording.new_console().print(table.rich())
