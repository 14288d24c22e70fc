"""Exports that carry a cut-off: SQL cuts what the cut-off cuts, engines get their threshold, others a note."""

import json
import math
import sqlite3

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import RankwiseError


@pytest.fixture(scope="module")
def lists():
    return rw.make_lists(300, documents=10, features=4, random_state=0)


@pytest.fixture(scope="module")
def model(lists):
    return rw.RidgeRanker(n_jobs=1).fit(lists[:60])


@pytest.fixture(scope="module")
def by_score(model, lists):
    return rw.cutoff(model, lists[60:], keep="recall>=0.8")


@pytest.fixture(scope="module")
def by_rank(model, lists):
    return rw.cutoff(model, lists[60:], keep="recall>=0.8", by="rank")


@pytest.mark.parametrize("by", ["score", "rank"])
def test_sql_keeps_what_the_cut_off_keeps(by, by_score, by_rank, model, lists):
    cutoff, query = {"score": by_score, "rank": by_rank}[by], lists[60:61]
    done = rw.export(model, "sql", cutoff=cutoff)
    base = sqlite3.connect(":memory:")
    names = lists.feature_names
    base.execute(f"CREATE TABLE documents ({', '.join(f'{name} REAL' for name in names)})")
    base.executemany(f"INSERT INTO documents VALUES ({', '.join('?' * len(names))})", query.X.tolist())
    found = [row[-1] for row in base.execute(done.files["cut.sql"])]
    scores = model.predict(query)
    expected = np.sort(scores[cutoff.kept(query, scores)])[::-1]
    assert found == pytest.approx(expected.tolist())
    assert 0 < len(found) < 10


def test_engines_get_the_threshold_of_their_own_scores(by_score, by_rank, model):
    done = rw.export(model, "opensearch", cutoff=by_score, shift=10.0)
    search = json.loads(done.files["search.json"])
    assert search["min_score"] == np.float32(by_score.value + 10.0)
    assert search["query"]["bool"]["must"][0]["sltr"]["model"] == "rankwise"
    assert json.loads(rw.export(model, "elasticsearch", cutoff=by_rank).files["search.json"])["size"] == by_rank.value
    assert "search.json" not in rw.export(model, "opensearch").files


def test_others_say_what_to_do_and_what_no_engine_can_is_refused(by_score, by_rank, model, lists):
    for target in ("solr", "vespa", "ranklib", "c", "python"):
        (note,) = [one for one in rw.export(model, target, cutoff=by_score).notes if one.startswith("cut-off: ")]
        assert repr(by_score.value) in note
        (note,) = [one for one in rw.export(model, target, cutoff=by_rank).notes if one.startswith("cut-off: ")]
        assert f"the first {by_rank.value:.0f} documents" in note
    standardized = rw.cutoff(model, lists[60:], keep="recall>=0.8", by="standardized")
    with pytest.raises(RankwiseError, match="this cut-off is on scores standardized within their query"):
        rw.export(model, "sql", cutoff=standardized)
    everything = rw.cutoff(model, lists[60:90], keep="recall>=0.99")
    assert everything.value == -math.inf
    assert "cut.sql" not in rw.export(model, "sql", cutoff=everything).files
