"""Agreement with the official LETOR evaluator: ``python3 run.py python -m experiments.letor_evaluator``.

Reads the OHSUMED parts, RankSVM's scores for the five test folds and what the evaluator printed for them from the
folder that RANKWISE_DATA names, and writes the block of docs/measures.md.
"""

import csv
import os
import sys
from pathlib import Path

from experiments.pages import markdown_table, write_block
from rankwise.evaluation.evaluation import evaluate
from rankwise.evaluation.files import read_scores
from rankwise.io.letor.read import read_letor

MEASURES = [f"nDCG@{k}" for k in range(1, 11)] + ["MeanNDCG"] + [f"P@{k}" for k in range(1, 11)] + ["AP"]
SHOWN = ["nDCG@1", "nDCG@5", "nDCG@10", "MeanNDCG", "P@10", "AP"]
PAGE = Path(__file__).parents[1] / "docs" / "measures.md"


def printed(data: Path) -> dict[int, dict[str, str]]:
    """fold -> measure -> the four decimals that the evaluator printed."""
    with open(data / "letor-evaluator" / "ohsumed-expected.tsv", encoding="ascii") as lines:
        rows = [[cell for cell in row if cell] for row in csv.reader(lines, delimiter="\t")]
    cells: dict[int, list[str]] = {}
    for row in rows:
        if row and row[0].removeprefix("Fold").isdigit():
            cells.setdefault(int(row[0].removeprefix("Fold")), []).extend(row[1:])
    return {fold: dict(zip(MEASURES, values, strict=True)) for fold, values in cells.items()}


def measured(data: Path, fold: int) -> dict[str, str]:
    """The same under ``like="letor"``, printed to four decimals."""
    part = (fold + 3) % 5 + 1  # fold 1 is tested on part 5, fold 2 on part 1, ...
    queries = read_letor(data / "ohsumed" / f"S{part}.txt.gz")
    scores = data / "letor-evaluator" / f"ohsumed-Fold{fold}-test.scores.gz"
    found = evaluate(queries, read_scores(scores, queries), MEASURES, like="letor")
    return {measure: f"{found.mean[measure]:.4f}" for measure in MEASURES}


def block(theirs: dict[int, dict[str, str]], ours: dict[int, dict[str, str]]) -> str:
    """How many values agree, in a sentence, and some of them in a table."""
    equal = sum(theirs[fold][measure] == ours[fold][measure] for fold in theirs for measure in MEASURES)
    rows = [
        [str(fold), name, *(values[fold][measure] for measure in SHOWN)]
        for fold in theirs
        for name, values in (("LETOR", theirs), ("rankwise", ours))
    ]
    sentence = (
        'The official LETOR evaluator was compared with `evaluate(..., like="letor")` on scores of RankSVM for the '
        f"five test folds of OHSUMED. Of {len(theirs) * len(MEASURES)} printed values (NDCG@1 to 10, MeanNDCG, P@1 to "
        f"10, MAP; five folds) {equal} agree to all four decimals. "
        "Script: `python3 run.py python -m experiments.letor_evaluator` (with `RANKWISE_DATA` set)."
    )
    table = markdown_table(["fold", "evaluator", *SHOWN], rows)
    return f"{sentence}\n\n:::{{dropdown}} The values\n\n{table}\n\n:::"


def main() -> int:
    folder = os.environ.get("RANKWISE_DATA")
    if not folder:
        print("set RANKWISE_DATA to the folder with the ohsumed and letor-evaluator data", file=sys.stderr)
        return 2
    theirs = printed(Path(folder))
    text = block(theirs, {fold: measured(Path(folder), fold) for fold in theirs})
    write_block(PAGE, "letor", text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
