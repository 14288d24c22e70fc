"""The ``letor`` preset against what the official LETOR evaluator printed: all four decimals."""

import csv
import gzip

import numpy as np
import pytest

from rankwise.data.letor import read_letor
from rankwise.evaluation.evaluate import evaluate

MEASURES = [f"nDCG@{k}" for k in range(1, 11)] + ["MeanNDCG"] + [f"P@{k}" for k in range(1, 11)] + ["AP"]


@pytest.fixture
def printed(data_folder):
    """fold -> the evaluator's 22 numbers, as printed."""
    with open(data_folder / "letor-evaluator" / "ohsumed-expected.tsv", encoding="ascii") as lines:
        rows = [[cell for cell in row if cell] for row in csv.reader(lines, delimiter="\t")]
    folds = [row for row in rows if row and row[0].startswith("Fold") and row[0] != "Folds"]
    return {row[0]: [cell for found in folds if found[0] == row[0] for cell in found[1:]] for row in folds}


@pytest.mark.parametrize("fold", range(1, 6))
def test_the_letor_preset_prints_what_the_official_evaluator_printed(data_folder, printed, fold):
    part = (fold + 3) % 5 + 1  # fold 1 is tested on part 5, fold 2 on part 1, ...
    queries = read_letor(data_folder / "ohsumed" / f"S{part}.txt.gz")
    with gzip.open(data_folder / "letor-evaluator" / f"ohsumed-Fold{fold}-test.scores.gz", "rt") as lines:
        scores = np.array([float(line) for line in lines])
    found = evaluate(queries, scores, MEASURES, like="letor")
    assert [f"{found.mean[measure]:.4f}" for measure in MEASURES] == printed[f"Fold{fold}"]
    assert len(printed[f"Fold{fold}"]) == 22
