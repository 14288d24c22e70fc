"""What a column is taken for, and why."""

import numpy as np
import pandas as pd
import pytest

import rankwise as rw
from rankwise.features.columns import decide, is_heavy
from rankwise.features.table import as_table
from tests.features.shop import KINDS, ROLES, shop

RNG = np.random.default_rng(5)


def kind_of(values, name="x", **options):
    table = as_table(pd.DataFrame({name: values}))
    return decide(table.column(name), options.get("max_levels", 50), options.get("owner"), options.get("asked"))


def test_every_column_of_the_shop_is_what_it_is():
    builder = rw.FeatureBuilder().fit(shop(), **ROLES)
    assert {row["column"]: row["kind"] for row in builder.plan_} == KINDS
    assert all(row["reason"] for row in builder.plan_)
    left_out = {row["column"] for row in builder.plan_ if not row["features"]}
    assert left_out == {"query", "title", "words", "one"}
    assert list(builder.report_["column"]) == list(KINDS)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.0, 2.5, None], "number"),
        (["1", "2.5", ""], "number"),
        ([0, 1, 1], "boolean"),
        (["True", "false", "NA"], "boolean"),
        (["y", "n", "y"], "boolean"),
        ([7, 7, 7], "constant"),
        (["a", "a", "a"], "constant"),
        ([None, None, None], "constant"),
        (["a", None, "a"], "category"),
        (["a", "b", "c"], "category"),
        (["5 kg", "12 kg", "7 kg"], "amount"),
        (["2024-01-05", "2024-02-07", None], "date"),
        (["01/02/2024", "02/03/2024", None], "other"),
        (["1,234", "5,678", None], "other"),
        ([[1], [2], [3]], "other"),
        (["007", "012", "013"], "category"),
    ],
)
def test_the_kind_follows_from_the_values(values, kind):
    assert kind_of(values).kind == kind


@pytest.mark.parametrize(
    ("values", "name", "kind"),
    [
        ([f"p{i}" for i in range(100)], "x", "identifier"),
        (RNG.permutation(1000) + 17, "x", "identifier"),
        (RNG.integers(0, 400, 1000) * 7, "product_id", "identifier"),
        (RNG.integers(0, 400, 1000) * 7, "humid", "number"),
        (RNG.normal(size=1000), "product_id", "number"),
        ([f"w{i % 80}" for i in range(1000)], "x", "text"),
        ([f"w{i % 80}" for i in range(1000)], "url", "identifier"),
        ([f"w{i % 8}" for i in range(1000)], "url", "category"),
    ],
)
def test_identifiers_and_texts_are_left_out(values, name, kind):
    assert kind_of(list(values), name).kind == kind


def test_a_text_that_names_the_query_is_an_identifier():
    owner = np.repeat(np.arange(5), 4)
    assert kind_of([f"query {number}" for number in owner], owner=owner).kind == "identifier"
    assert kind_of([f"group {number // 2}" for number in owner], owner=owner).kind == "category"


def test_numbers_with_some_words_are_named_with_what_to_do():
    found = kind_of([str(number) for number in range(100)] * 2 + ["unknown"])
    assert found.kind == "text"
    assert "columns={'x': 'number'}" in found.reason
    assert "'unknown'" in found.reason
    asked = kind_of([str(number) for number in range(100)] * 2 + ["unknown"], asked="number")
    assert (asked.kind, asked.gaps) == ("number", 1)


@pytest.mark.parametrize(
    ("values", "heavy"),
    [
        (RNG.normal(size=5000), False),
        (RNG.exponential(size=5000), False),
        (RNG.uniform(size=5000), False),
        (RNG.lognormal(size=5000), True),
        (-RNG.pareto(1.5, size=5000), True),
        (np.where(RNG.random(5000) < 0.9, 0.0, RNG.lognormal(sigma=2, size=5000)), True),
        (RNG.integers(0, 5, 5000).astype(float), False),
    ],
)
def test_heavy_tails_are_those_of_the_lognormal_and_beyond(values, heavy):
    assert is_heavy(values) is heavy


def test_what_the_user_says_goes_before_what_the_builder_sees():
    frame = shop()
    told = {"size": "category", "sku": "ignore", "stock": "category", "added": "ignore", "words": "category"}
    builder = rw.FeatureBuilder(columns=told, ignore=["brand"]).fit(frame, qid="search", label="grade")
    kinds = {row["column"]: row["kind"] for row in builder.plan_}
    assert (kinds["size"], kinds["stock"], kinds["words"]) == ("category", "category", "category")
    assert (kinds["sku"], kinds["added"], kinds["brand"]) == ("ignored", "ignored", "ignored")
    assert "size=7" in builder.feature_names_out_


def test_a_level_below_the_share_is_put_together_with_unseen_ones():
    frame = shop()
    builder = rw.FeatureBuilder().fit(frame, **ROLES)
    names = builder.feature_names_out_
    other = names.index("brand=(other)")
    frame["brand"] = "never seen"
    X = builder.transform(frame).X
    assert (X[:, other] == 1).all()
    assert all((X[:, names.index(f"brand={level}")] == 0).all() for level in ("acme", "zeta", "omni", "(missing)"))
