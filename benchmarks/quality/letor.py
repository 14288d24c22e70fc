"""The same comparison on anyone's own copy of a set in LETOR format.

``python3 run.py bench quality --letor FOLDER [ranker ...]`` fits ``AutoRanker``, ``BoostedRanker``, ``RidgeCommittee``
and the peers, or the rankers that are named, such as ``"CatBoost YetiRank, bagged"``; ``bagged`` names every bagged
peer. It prints a table and writes it with the values of every query to build/quality/letor, never into docs/. A run
that is stopped resumes with the next ranker. FOLDER holds one of

- MSLR-WEB10K, MSLR-WEB30K, LETOR 3.0 and 4.0: ``Fold1`` to ``Fold5`` with ``train.txt``, ``vali.txt`` and ``test.txt``,
  or parts ``S1.txt`` to ``S5.txt``. Five folds as their authors divide them (three parts, one, one), each query tested
  once (Qin and Liu, 2013).
- Yahoo: ``set1.train.txt``, ``set1.valid.txt``, ``set1.test.txt``, or ``set2``. One division, ERR and NDCG@10 (Chapelle
  and Chang, 2011).
- Istella: ``train.txt``, ``vali.txt`` (Istella-S) and ``test.txt``; Istella has no validation part, and a fifth of the
  training queries takes its place (Dato et al., 2016). Values beyond 3e38, which stand for unknown ones, become 1e6.

Every file may be gzipped. The gain of NDCG@10 is 2^label - 1, its discount 1 / log2(1 + rank); labels are 0 to 4.
Queries without relevant documents count as 0, as in LETOR's own evaluation script; LightGBM counts them as 1, so that
values of papers that used its measure are larger where a set has such queries. The settings of rankers and peers are
those of docs/quality.md, with one seed. Peers stop early on the validation part, which trains no peer unless it is
bagged; rankers of the package that train on validation queries do so here. Every fit uses one thread, and X is float64:
a fold of MSLR-WEB30K takes 4 GB beside what a ranker needs.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rankwise as rw
from benchmarks.quality import CELLS, LARGE, MEASURES, compute, file_of, rankers
from benchmarks.quality.page import OURS, difference, interval, table
from benchmarks.quality.peers import BAGGED, PEERS
from benchmarks.quality.sets import Set, read_alike
from rankwise._files import writing
from rankwise.errors import FileFormatError, RankwiseError
from rankwise.queries.folds import Fold

RANKERS = ("AutoRanker", "BoostedRanker", "RidgeCommittee", *PEERS)
MEASURED = (*MEASURES, "ERR")
KNOWN_VALUES, IN_PLACE = 3e38, 1e6  # float32, which peers use inside, ends at 3.4e38
THREE_FILES = (("set1.train", "set1.valid", "set1.test"), ("set2.train", "set2.valid", "set2.test"))
THREE_FILES += (("train", "vali", "test"), ("train", "valid", "test"))


def folds_of(folder: Path) -> Callable[[], Iterator[Fold]]:
    """What reads the folds of a folder; whether the files are there is checked at once."""
    if any(re.fullmatch(r"Fold\d+|S[1-5]\.txt(\.gz)?", path.name) for path in folder.glob("*")):
        rw.io.read_folds(folder)
        return lambda: rw.io.read_folds(folder)
    for names in THREE_FILES:
        files = [file for name in names if (file := _text(folder, name))]
        if len(files) == len(names):
            return lambda: _one_fold(files)
    files = [file for name in ("train", "test") if (file := _text(folder, name))]
    if len(files) == 2:
        return lambda: _one_fold(files)
    raise FileFormatError(
        f"{folder} must hold Fold1 ... Fold5, or S1.txt ... S5.txt, or set1.train.txt, set1.valid.txt and "
        "set1.test.txt, or train.txt, vali.txt and test.txt, plain or as .txt.gz"
    )


def _text(folder: Path, name: str) -> Path | None:
    return next((path for ending in (".txt", ".txt.gz") if (path := folder / f"{name}{ending}").is_file()), None)


def _one_fold(files: list[Path]) -> Iterator[Fold]:
    """Training, validation and test file; without a second one, a fifth of the training queries."""
    train, *validation, test = (part.map_features(_without_unknown) for part in read_alike(files, zero_based=False))
    yield Fold(train, *validation, test) if validation else Fold(*rw.split(train, (0.8, 0.2)), test)


def _without_unknown(X: Any) -> Any:
    unknown = np.abs(X) > KNOWN_VALUES
    return np.where(unknown, IN_PLACE, X) if unknown.any() else X


def wanted(arguments: list[str]) -> list[str]:
    """The rankers that were asked for."""
    chosen = [name for given in arguments for name in (BAGGED if given == "bagged" else [given])]
    for name in chosen:
        if name not in rankers():
            raise RankwiseError(f"rankers must be 'bagged' or some of {'; '.join(rankers())}; got {name!r}")
    return chosen or list(RANKERS)


def as_markdown(title: str, cells: dict[str, dict[str, Any]]) -> str:
    """Means, CPU seconds, and how far ``AutoRanker`` is ahead of each of the others."""
    others = [name for name in cells if name != OURS]
    rows = []
    for name, cell in cells.items():
        row = [name, *(f"{np.mean(cell['values'][measure]):.4f}" for measure in MEASURED), f"{cell['seconds']:.1f}"]
        if OURS in cells and name != OURS:
            found = difference(cells[OURS], cell, "nDCG@10")
            low, high = interval(found, len(cell["values"]["nDCG@10"]), len(others))
            row.append(f"{found['difference']:+.4f} [{low:+.4f}, {high:+.4f}]")
        rows.append([*row, ""][: len(MEASURED) + 3])
    queries = len(next(iter(cells.values()))["values"]["nDCG@10"])
    text = f"{title}: {queries:,} test queries; those without relevant documents count as 0."
    lines = table(["", *MEASURED, "CPU seconds per fit", f"{OURS} is ahead in nDCG@10 by"], rows)
    return "\n".join([text, "", *lines, "", "The intervals are paired over queries and hold together with 95%."])


def main(arguments: list[str]) -> int:
    """Compare on the folder that is named first."""
    if not arguments:
        print('usage: python3 run.py bench quality --letor FOLDER ["ranker" ...]', file=sys.stderr)
        return 2
    folder = Path(arguments[0]).resolve()
    try:
        if not folder.is_dir():
            raise FileFormatError(f"{folder} must be a folder that holds a set in LETOR format")
        one, names = Set(f"letor/{folder.name}", folder.name, folds_of(folder), LARGE), wanted(arguments[1:])
        place = CELLS / one.name
        place.mkdir(parents=True, exist_ok=True)
        origin = place / "folder.txt"
        if origin.exists() and origin.read_text(encoding="utf-8") != str(folder):
            raise RankwiseError(f"{place} holds results of {origin.read_text(encoding='utf-8')}: move it away first")
        origin.write_text(str(folder), encoding="utf-8")
        compute([(one, name) for name in names], MEASURED)
    except (RankwiseError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    known = [name for name in rankers() if file_of(one, name).exists()]
    cells = {name: json.loads(file_of(one, name).read_text()) for name in sorted(known, key=[*RANKERS, *known].index)}
    text = as_markdown(one.title, cells)
    print(text)
    for file, body in (("results.md", text), ("results.json", json.dumps(cells))):
        with writing(place / file) as part:
            part.write_text(body + "\n", encoding="utf-8")
    return 0
