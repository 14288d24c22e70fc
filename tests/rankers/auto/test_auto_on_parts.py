"""AutoRanker on data sets in parts: the bits of memory."""

import logging

import numpy as np
import pytest

import rankwise as rw
from rankwise._kernels import parallel
from rankwise.errors import DataError
from rankwise.rankers import _model_selection
from rankwise.rankers.boosting import packed_rows
from tests.rankers.boosting.test_boosted_on_parts import CUTS, parts_of, queries
from tests.rankers.test_parts import assert_same

SMALL = {"max_trees": 20, "folds": 3}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(parallel, "CHUNK", 120)


def assert_same_stack(one, other):
    assert_same(one, other)
    assert one.weights_ == other.weights_
    for column in set(one.report_.columns) - {"member", "seconds"}:
        np.testing.assert_array_equal(one.report_[column], other.report_[column])


@pytest.mark.parametrize(
    ("options", "data", "validated"),
    [
        ({}, {}, False),
        ({"compact": True, "members": ("normal", "started")}, {"weights": False}, True),
        ({"measure": "AP"}, {"holes": 0.0}, True),
        ({"members": ("ridge",), "missing": "error"}, {"holes": 0.0}, False),
    ],
    ids=["gaps and weights", "compact", "no gaps", "linear"],
)
def test_parts_teach_the_bits_of_memory(options, data, validated, tmp_path):
    train, held = queries(categories=False, **data), queries(30, seed=1, categories=False, **data)
    validation = held if validated else None
    own = rw.AutoRanker(**{**SMALL, **options}).fit(train, validation=validation)
    for number, cut in enumerate(CUTS):
        parts = parts_of(train, tmp_path / f"{cut}", cut)
        other = parts_of(held, tmp_path / f"held {cut}", cut) if validated and number else validation
        found = rw.AutoRanker(n_jobs=1 + number % 2, **{**SMALL, **options}).fit(parts, validation=other)
        assert_same_stack(own, found)
        assert found.predict(parts).tobytes() == own.predict(train).tobytes()


def test_of_many_queries_and_documents_a_part_and_a_sample_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(_model_selection, "MANY", 30)
    monkeypatch.setattr(packed_rows, "_SAMPLED", 200)
    train = queries(categories=False)
    own = rw.AutoRanker(**SMALL).fit(train)
    assert own.ensemble_.n_trees == own.report_["trees"][own.report_["weight"] > 0].sum(), "one fold"
    assert_same_stack(own, rw.AutoRanker(**SMALL).fit(parts_of(train, tmp_path / "lists")))


def test_processes_and_checkpoints_change_no_bit(tmp_path, caplog):
    train = queries(categories=False)
    parts = parts_of(train, tmp_path / "lists")
    own = rw.AutoRanker(**SMALL).fit(train)
    assert_same_stack(own, rw.AutoRanker(**SMALL).fit(parts.on("processes", workers=2)))
    assert_same_stack(own, rw.AutoRanker(**SMALL).fit(parts, checkpoint=tmp_path / "checkpoint"))
    with caplog.at_level(logging.INFO, "rankwise"):
        again = rw.AutoRanker(verbose=True, **SMALL).fit(parts, checkpoint=tmp_path / "checkpoint")
    assert_same_stack(own, again)
    grown = [one.message for one in caplog.records if one.message.startswith("tree ")]
    assert grown
    assert all("from the checkpoint" in line for line in grown)


def test_hold_out_parts_certify(tmp_path):
    train, held = queries(categories=False), queries(60, seed=1, categories=False, weights=False)
    model = rw.AutoRanker(**SMALL).fit(parts_of(train, tmp_path / "lists"))
    inside = model.certificate(holdout=held)
    assert [row.value for row in model.certificate(holdout=parts_of(held, tmp_path / "held")).rows] == [
        row.value for row in inside.rows
    ]


def test_trees_of_other_packages_need_memory(tmp_path):
    with pytest.raises(DataError, match=r"AutoRanker does not run on Parts: trees of other packages .* boosters="):
        rw.AutoRanker(boosters=("lightgbm",)).fit(parts_of(queries(), tmp_path / "lists"))


def test_the_cost_is_counted_in_trees(tmp_path):
    parts = parts_of(queries(categories=False), tmp_path / "lists")
    assert parts.estimate(rw.AutoRanker(max_trees=50, folds=3)).passes == 2 * 3 * 50
    assert parts.estimate(rw.AutoRanker(max_trees=50, folds=3, compact=True)).most == 2 * 4 * 50
    assert "pass" in str(parts.estimate(rw.AutoRanker(members=("ridge",))))
