"""W5: a table with texts, dates and gaps goes from training to an engine; the file makes the features itself."""

import shutil
import sqlite3
import subprocess
from ctypes import CDLL, POINTER, c_char_p, c_double
from functools import cache

import numpy as np
import pandas as pd
import pytest

import rankwise as rw
from rankwise.errors import DataError, RankwiseError
from rankwise.exports import targets
from rankwise.exports.columns import rows_of_columns
from rankwise.features.table import as_table
from tests.features.shop import ROLES, shop

HOLDING = sorted(name for name, kind in targets().items() if kind.holds_columns)
OTHERS = ["ranklib", "solr", "elasticsearch", "opensearch"]
RANKERS = {
    "linear": lambda: rw.RidgeRanker(alpha=1.0),
    "steps": lambda: rw.RankBoost(rounds=20),
    "trees": lambda: rw.BoostedRanker(trees=8, seeds=1, patience=None),
    "stack": lambda: rw.AutoRanker(folds=2, max_trees=10),
}


def later():
    """Rows that training did not see: unknown levels and units, gaps in every column, negative and huge numbers."""
    frame = shop(n_queries=12, seed=5)
    for number, name in enumerate(("price", "views", "stock", "sold", "brand", "added", "rating", "size")):
        column = frame[name].astype(object)
        column[frame.index % 11 == number] = None
        frame[name] = column
    frame.loc[frame.index % 7 == 1, "brand"] = "unheard of"
    frame.loc[frame.index % 7 == 2, "price"] = "3.50 GBP"
    frame.loc[frame.index % 7 == 3, "views"] = -12.5
    frame.loc[frame.index % 7 == 4, "views"] = 1e12
    return frame


@cache
def learned(kind="linear", **settings):
    builder = rw.FeatureBuilder(**ROLES, **settings)
    return RANKERS[kind]().fit(builder.fit_transform(shop()))


def rows(model, frame):
    return rows_of_columns(model.features_, as_table(frame))


@pytest.mark.parametrize("kind", RANKERS)
@pytest.mark.parametrize("to", HOLDING)
def test_w5_scores_of_raw_columns_are_those_of_the_ranker(to, kind):
    model, frame = learned(kind), later()
    parity = rw.export(model, to, sample=frame).parity
    exact = to != "onnx"
    assert parity.documents == len(frame)
    assert parity.largest_difference <= (1e-12 if exact else 1e-5) * max(1.0, parity.largest_score)
    assert parity.same_order


@pytest.mark.parametrize("to", HOLDING)
@pytest.mark.parametrize("numbers", ["standard", "minmax", "robust"])
def test_w5_scales_and_codes_of_levels_are_held(to, numbers):
    model = learned(numbers=numbers, categories="ordinal", rare=None)
    parity = rw.export(model, to, sample=later()).parity
    assert parity.largest_difference <= 1e-5 * max(1.0, parity.largest_score)


@pytest.mark.parametrize("to", HOLDING)
def test_w5_gaps_that_the_builder_keeps_go_where_trees_send_them(to):
    model = learned("trees", missing="keep")
    parity = rw.export(model, to, sample=later()).parity
    assert parity.largest_difference <= 1e-5 * max(1.0, parity.largest_score)


def test_w5_the_function_of_python_takes_a_row_as_a_database_gives_it():
    model, frame = learned(), later()
    namespace = {}
    exec(rw.export(model, "python", called="score").text, namespace)
    names = namespace["FEATURES"]
    assert names[:3] == ("price", "price_unit", "views")
    given = [[None if one == "" else one for one in row] for row in rows(model, frame).tolist()]
    np.testing.assert_allclose([namespace["score"](row) for row in given], model.predict(frame), rtol=1e-12)
    given[0][names.index("brand")] = 7
    with pytest.raises(TypeError, match="column brand must be a text, got 7"):
        namespace["score"](given[0])


def test_w5_sql_reads_null_and_quotes_levels():
    frame = shop()
    frame["brand"] = frame["brand"].replace({"acme": "o'ne", "zeta": 'tw"o\\', "omni": "dr%s {0}"})
    model = RANKERS["linear"]().fit(rw.FeatureBuilder(**ROLES).fit_transform(frame))
    assert rw.export(model, "sql", sample=frame).parity.largest_difference < 1e-12
    given = [[None if one == "" else one for one in row] for row in rows(model, frame).tolist()]
    done = rw.export(model, "sql")
    base = sqlite3.connect(":memory:")
    base.create_function("LN", 1, lambda x: None if x is None else float(np.log(x)))
    columns = ", ".join(f'"{name}"' for name in _names(model))
    base.execute(f"CREATE TABLE documents ({columns})")
    base.executemany(f"INSERT INTO documents VALUES ({', '.join('?' * len(given[0]))})", given)
    scores = [row[-1] for row in base.execute(done.text)]
    base.close()
    np.testing.assert_allclose(scores, model.predict(frame), rtol=1e-12)
    for to in HOLDING:
        assert rw.export(model, to, sample=frame).parity.largest_difference < 1e-5


def _names(model):
    namespace = {}
    exec(rw.export(model, "python").text, namespace)
    return namespace["FEATURES"]


@pytest.mark.parametrize("kind", RANKERS)
def test_w5_the_function_of_c_compiles_and_has_the_scores_of_the_check(kind, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    model, frame = learned(kind), later()
    done = rw.export(model, "c", called="score")
    (tmp_path / "score.c").write_text(done.text)
    flags = ["-std=c89", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", tmp_path / "s.so", tmp_path / "score.c", "-lm"], check=True)
    function = CDLL(str(tmp_path / "s.so")).score
    function.restype, function.argtypes = c_double, [POINTER(c_double), POINTER(c_char_p)]
    found = []
    for row in rows(model, frame).tolist():
        numbers = [np.nan if one is None or isinstance(one, str) else one for one in row]
        texts = [one.encode() if isinstance(one, str) and one else None for one in row]
        found.append(function((c_double * len(row))(*numbers), (c_char_p * len(row))(*texts)))
    np.testing.assert_allclose(found, model.predict(frame), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("to", OTHERS)
def test_w5_an_engine_that_cannot_hold_it_names_the_columns_and_the_way_out(to):
    with pytest.raises(RankwiseError, match=r"'price' \(.*'views' \(sign.*export to c, onnx, python, sql, vespa"):
        rw.export(learned(), to)
    assert rw.export(learned(), to, features="built", sample=shop()).parity.same_order


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"per_query": {"rating": "zscore"}}, "'rating' .*zscore within the query"),
        ({"heavy_tails": "quantile"}, "'views' .*place among the training values"),
    ],
)
def test_w5_what_no_target_can_hold_is_named_without_a_false_way_out(settings, told):
    builder = rw.FeatureBuilder(**ROLES, **settings)
    model = RANKERS["linear"]().fit(builder.fit_transform(shop()))
    with pytest.raises(RankwiseError, match=told) as error:
        rw.export(model, "python")
    assert "export to" not in str(error.value)


def test_w5_names_of_columns_and_a_sample_that_is_not_raw():
    model = learned()
    with pytest.raises(DataError, match=r"one name per column \(price, price_unit, .*got 2 names for 9 columns"):
        rw.export(model, "sql", feature_names=["a", "b"])
    text = rw.export(model, "sql", feature_names=list("abcdefghi")).text
    assert 'COALESCE("a"' in text
    with pytest.raises(DataError, match="sample must be the raw table"):
        rw.export(model, "sql", sample=model.features_.transform(shop()))


def test_w5_gaps_of_plain_columns_are_filled_in_the_file():
    frame = shop()[["search", "grade", "size"]]
    frame["cost"] = np.random.default_rng(0).uniform(1, 2, len(frame))
    model = RANKERS["linear"]().fit(rw.FeatureBuilder(qid="search", label="grade").fit_transform(frame))
    gaps = frame.assign(cost=frame["cost"].where(frame.index % 3 > 0), size=frame["size"].where(frame.index % 5 > 0))
    for to in HOLDING:
        assert rw.export(model, to, sample=gaps).parity.same_order
    assert any("give no gaps" in note for note in rw.export(model, "solr").notes)


def test_w5_names_that_look_like_code_do_not_disturb_the_check():
    queries = rw.make_lists(20, features=2, random_state=0)
    model = rw.RankBoost(rounds=5).fit(queries)
    names = ["i < 3; double s = 4;", "v - v == 0.0"]
    assert rw.export(model, "c", sample=queries, feature_names=names).parity.largest_difference == 0


def test_w5_from_a_csv_file_through_training_to_every_target(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"qid": np.repeat(np.arange(30), 6), "label": rng.integers(0, 3, 180)})
    frame["bm25"], frame["url"] = rng.normal(8, 2, 180), [f"https://example.org/{n}" for n in range(180)]
    frame["views"] = np.exp(rng.normal(2, 2, 180))
    frame.to_csv("shop.csv", index=False)
    code, _, err = run("train", "shop.csv", "-r", "RidgeRanker", "--set", "alpha=1.0", "-o", "m.rankwise")
    assert code == 0, err
    for to in HOLDING:
        code, out, err = run("export", "m.rankwise", "--to", to, "--sample", "shop.csv", "-o", f"file.{to}")
        assert code == 0, err
        assert "inverted beyond float32 0" in " ".join(out.split())
    code, _, err = run("export", "m.rankwise", "--to", "solr", "-o", "solr")
    assert code == 2
    assert "'views' (sign(x) log(1 + |x|))" in err
    assert "--features built" in err
    code, out, err = run("export", "m.rankwise", "--to", "solr", "--features", "built", "-o", "solr")
    assert code == 0, err
