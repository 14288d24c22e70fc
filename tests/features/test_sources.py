"""The same table from pandas, polars, Arrow and CSV gives the same queries, to the bit."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rankwise as rw
from rankwise.errors import DataError
from tests.features.shop import ROLES, shop


def as_csv(frame, folder, separator=",", decimal="."):
    path = folder / "shop.csv"
    frame.to_csv(path, index=False, sep=separator, decimal=decimal)
    return rw.io.read_columns(path)


def every_form(frame, folder):
    plain = frame.copy()
    yield "polars", pl.from_pandas(plain)
    yield "lazy polars", pl.from_pandas(plain).lazy()
    yield "Arrow", pa.Table.from_pandas(plain, preserve_index=False)
    # pandas 3.0 fills the gaps of dates in the frame that it converts
    yield "Arrow types in pandas", plain.copy(deep=True).convert_dtypes(dtype_backend="pyarrow")
    yield "objects in pandas", plain.astype(object)
    yield "CSV", as_csv(plain, folder)
    yield "CSV of Germany", as_csv(plain, folder, ";", ",")
    path = folder / "shop.parquet"
    plain.to_parquet(path)
    yield "Parquet", rw.io.read_columns(path)


def same(first, second):
    assert first.X.tobytes() == second.X.tobytes()
    assert first.feature_names == second.feature_names
    assert np.array_equal(first.y, second.y)
    assert np.array_equal(first.start, second.start)
    assert first.names() == second.names()
    assert list(first.docid) == list(second.docid)


def test_every_source_gives_the_same_queries(tmp_path):
    frame = shop()
    expected = rw.FeatureBuilder().fit(frame, **ROLES)
    queries = expected.transform(frame)
    for name, table in every_form(frame, tmp_path):
        own = rw.FeatureBuilder().fit(table, **ROLES)
        assert own.plan_ == [
            row | {"reason": found["reason"]} for row, found in zip(expected.plan_, own.plan_, strict=True)
        ], name
        same(own.transform(table), queries)
        same(expected.transform(table), queries)  # learned from one source, applied to another


def test_columns_and_rows_may_be_in_any_order_with_others_beside_them():
    frame = shop()
    builder = rw.FeatureBuilder().fit(frame, **ROLES)
    expected = builder.transform(frame)
    order = np.random.default_rng(1).permutation(len(frame))
    other = frame.iloc[order][frame.columns[::-1]].assign(extra="x", another=1.5)
    found = builder.transform(other)
    assert found.X.tobytes() == np.ascontiguousarray(expected.X[order]).tobytes()
    assert np.array_equal(found.y, expected.y[order])


def test_labels_may_be_missing_and_all_missing_columns_are_named():
    frame = shop()
    builder = rw.FeatureBuilder().fit(frame, **ROLES)
    assert builder.transform(frame.drop(columns="grade")).y is None
    with pytest.raises(DataError, match="no column 'views', 'brand', 'search', which"):
        builder.transform(frame.drop(columns=["brand", "views", "search", "title"]))


def test_a_label_that_is_not_named_is_no_feature():
    with pytest.raises(DataError, match=r"no column 'label' .did you mean 'grade'"):
        rw.FeatureBuilder(qid="search").fit(shop())


def test_gaps_get_the_median_of_training_and_an_indicator():
    frame = shop()
    builder = rw.FeatureBuilder().fit(frame, **ROLES)
    X, names = builder.transform(frame).X, builder.feature_names_out_
    gaps = frame["rating"].isna().to_numpy()
    rating, flag = X[:, names.index("rating")], X[:, names.index("rating_missing")]
    assert np.array_equal(flag, gaps.astype(float))
    assert (rating[gaps] == frame["rating"].median()).all()
    assert np.array_equal(rating[~gaps], frame["rating"].to_numpy()[~gaps])
    later = frame.assign(views=np.nan)  # a gap that training did not have
    found = builder.transform(later).X[:, names.index("views_log")]
    assert found == pytest.approx(np.log1p(frame["views"].median()))


def test_gaps_stay_where_the_builder_is_told_so():
    frame = shop()
    builder = rw.FeatureBuilder(missing="keep").fit(frame, **ROLES)
    queries = builder.transform(frame)
    found = np.isnan(queries.X[:, builder.feature_names_out_.index("rating")])
    assert np.array_equal(found, frame["rating"].isna().to_numpy())
    assert "rating_missing" not in builder.feature_names_out_
    with pytest.raises(DataError, match="missing='zero'"):
        rw.RidgeRanker().fit(queries)
    assert np.isfinite(rw.RidgeRanker(missing="zero").fit(queries).predict(frame)).all()


def test_a_date_becomes_its_age_on_the_latest_day_of_training():
    frame = shop()
    builder = rw.FeatureBuilder().fit(frame, **ROLES)
    place = builder.feature_names_out_.index("added_age_days")
    there = frame["added"].notna().to_numpy()
    age = (frame["added"].max() - frame["added"]).dt.days.to_numpy()
    assert np.array_equal(builder.transform(frame).X[there, place], age[there])
    later = frame.assign(added=frame["added"].max() + pd.Timedelta(days=10, hours=6))
    assert (builder.transform(later).X[:, place] == -10.25).all()
    zoned = frame.assign(added=frame["added"].dt.tz_localize("UTC").dt.tz_convert("America/Lima"))
    assert builder.transform(zoned).X.tobytes() == builder.transform(frame).X.tobytes()


def test_prices_in_two_currencies_are_a_number_and_a_category():
    frame = shop()
    builder = rw.FeatureBuilder().fit(frame, **ROLES)
    X, names = builder.transform(frame).X, builder.feature_names_out_
    numbers = [float(text.replace("EUR", "").replace("$", "").replace(",", ".")) for text in frame["price"]]
    assert X[:, names.index("price_amount")].tolist() == numbers
    euros = frame["price"].str.contains("EUR").to_numpy(float)
    assert np.array_equal(X[:, names.index("price_unit=eur")], euros)
    assert np.array_equal(X[:, names.index("price_unit=$")], 1 - euros)
    strange = builder.transform(frame.assign(price="12 GBP")).X
    assert (strange[:, names.index("price_amount")] == np.median(numbers)).all()


def test_what_cannot_be_read_later_is_named():
    frame = shop()
    builder = rw.FeatureBuilder().fit(frame, **ROLES)
    with pytest.raises(DataError, match="column 'size' holds 'large' at row 0, and in training it was a number"):
        builder.transform(frame.assign(size="large"))
    with pytest.raises(DataError, match="column 'views' holds dates"):
        builder.transform(frame.assign(views=frame["added"]))
    with pytest.raises(DataError, match="column 'price' holds 'cheap' at row 0"):
        builder.transform(frame.assign(price="cheap"))


def test_words_are_labels_by_their_grades_and_unjudged_rows_are_dropped():
    frame = shop()
    words = np.array(["bad", "fair", "good"], dtype=object)[frame["grade"]]
    words[3] = None
    told = frame.assign(grade=words)
    builder = rw.FeatureBuilder(grades={"bad": 0, "fair": 1, "good": 2}, unjudged="drop").fit(told, **ROLES)
    queries = builder.transform(told)
    assert np.array_equal(queries.y, np.delete(frame["grade"].to_numpy(float), 3))
    assert queries.n_documents == len(frame) - 1
    with pytest.raises(DataError, match="grades="):
        rw.FeatureBuilder().fit(told, **ROLES).transform(told)


def test_queries_with_named_features_are_a_table_too():
    lists = rw.make_lists(20, features=3, random_state=1)
    named = rw.Queries.from_arrays(lists.X, lists.y, qid=lists.query_of_row, feature_names=["a", "b", "c"])
    builder = rw.FeatureBuilder(per_query={"b": "rank"}).fit(named)
    built = builder.transform(named)
    assert built.feature_names[:2] == ("a", "b_rank")
    model = rw.RidgeRanker().fit(built)
    assert np.array_equal(model.predict(named), model.predict(built))
    assert np.array_equal(model.predict(named[2]), model.predict(built[2]))
    with pytest.raises(DataError, match="already"):
        rw.FeatureBuilder().fit(built)


def test_a_table_without_features_is_refused_with_the_reasons():
    with pytest.raises(DataError, match="no column of the table makes a feature: x: it is 1 in every row"):
        rw.FeatureBuilder().fit(pd.DataFrame({"qid": [1, 1], "label": [0, 1], "x": [1, 1]}))
