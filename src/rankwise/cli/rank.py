"""``rankwise rank``: lists of any number, judged or not, as a saved ranker orders them, in the memory of one block."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from rankwise._errors import DataError, RankwiseError
from rankwise.cli import reading
from rankwise.cli.rank_output import Form
from rankwise.cli.reading import Base, Missing


def rank(
    model: Annotated[Path, typer.Argument(help="A ranker that was saved, as by rankwise train.")],
    data: Annotated[
        Path,
        typer.Argument(
            help="Lists, judged or not: LETOR text, CSV (.gz too; - is standard input), parquet, .rankwise."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Written beside and renamed (default: standard output).")
    ] = None,
    to: Annotated[
        Form | None, typer.Option("--to", help="What is written (default: what the ending of --out says, else csv).")
    ] = None,
    top: Annotated[int | None, typer.Option("--top", min=1, help="Only the best K documents of every query.")] = None,
    tag: Annotated[str, typer.Option("--tag", help="The run's name, in a TREC run.")] = "rankwise",
    unsorted: Annotated[
        bool, typer.Option("--unsorted", help="Rows of a query stand anywhere: the file is read as a whole.")
    ] = False,
    features: Annotated[
        int | None, typer.Option("--features", min=1, help="Features of a text that leaves out zeros.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON: a line a document; with --out, what was written.")
    ] = False,
    missing: Annotated[
        Missing | None, typer.Option("--missing", help="NaN, NULL, empty cells (default: as the ranker was told).")
    ] = None,
    base: reading.BaseOption = Base.auto,
    qid: reading.QidOption = "qid",
    label: reading.LabelOption = "label",
    docid: reading.DocidOption = None,
    ignore: reading.IgnoreOption = None,
) -> None:
    """Rank lists, judged or not, by a saved model: query, document, rank, score.

    Whole queries are read, ranked and written block by block, so that a file may be larger than memory. Equal scores
    keep the order of the input. Columns of a table are found by the names that the model has learned from.

    Example: rankwise rank model.rankwise test.txt --top 10

    Example: rankwise rank model.rankwise new.csv --qid query -o ranked.csv

    Example: zcat test.txt.gz | rankwise rank model.rankwise - -o test.run
    """
    from rankwise._api import load
    from rankwise._progress import progress
    from rankwise.cli.rank_lists import Asked, ranked_blocks
    from rankwise.cli.rank_output import form_of, opened
    from rankwise.data.anyfile import kind_of
    from rankwise.rankers._base import Ranker

    form = form_of(out, to, as_json)
    if not model.is_file() or kind_of(model) != "store":
        found = "is no saved ranker" if model.is_file() else "is not there"
        raise DataError(f"{model} {found}: the model comes first, then the lists")
    ranker = load(model)
    if not isinstance(ranker, Ranker):
        raise DataError(f"{model} holds {type(ranker).__name__}, and only a saved ranker can rank")
    if top is not None and form is Form.scores:
        raise RankwiseError("--to scores writes a score for every document: leave out --top")
    asked = Asked(
        ranker,
        model,
        data,
        missing=missing.value if missing is not None else ranker.missing,
        zero_based="auto" if base is Base.auto else base is Base.zero,
        features=features,
        unsorted=unsorted,
        columns={"qid": qid, "label": label or None, "docid": docid, "ignore": ignore or ()},
    )
    reading.refuse_what_cannot_be(data)
    size = os.path.getsize(data) if data.is_file() else None
    lists = documents = 0
    with progress("ranking", size, enabled=out is not None) as bar, opened(out, form, tag, top) as target:
        for block in ranked_blocks(asked, bar.advance):
            target.write(block)
            lists += len(block.queries)
            documents += block.queries.n_documents
    if out is None:
        return
    if as_json:
        print(json.dumps({"out": str(out), "ranker": ranker.name, "queries": lists, "documents": documents}))
    else:
        print(f"{out}: {lists:,} queries, {documents:,} documents ranked by {ranker.name}")
