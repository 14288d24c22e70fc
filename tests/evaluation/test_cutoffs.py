"""`rw.cutoff` and what it returns: which lists it cuts, for which model, and what it does not certify."""

import json
import math

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.guarantees import Cutoff


@pytest.fixture(scope="module")
def lists():
    return rw.make_lists(400, documents=12, features=5, random_state=0)


@pytest.fixture(scope="module")
def model(lists):
    return rw.RidgeRanker(alpha=1.0, n_jobs=1).fit(lists[:100])


@pytest.fixture(scope="module")
def found(model, lists):
    return rw.cutoff(model, lists[100:], keep="recall>=0.8")


def test_a_cut_by_score_keeps_the_documents_with_that_score_and_says_of_what_it_is_true(found, model, lists):
    scores = model.predict(lists)
    assert (found.kept(lists, scores) == (scores >= found.value)).all()
    assert found.share_kept == pytest.approx((scores[lists.query_of_row >= 100] >= found.value).mean())
    assert found.bound.value == 0.8 <= found.estimate
    assert found.bound.bounds == "R of what is kept on future queries with a relevant document"
    assert found.bound.applies is None
    assert [one.met for one in found.preconditions] == [True, None, True, None]
    shown = model.rank(lists[:20], cutoff=found)
    assert len(shown) == found.kept(lists[:20], model.predict(lists[:20])).sum()
    assert shown["score"].min() >= found.value
    whole = model.rank(lists[:20])
    assert shown["docid"].tolist() == whole["docid"][whole["score"] >= found.value].tolist()


def test_a_cut_by_rank_keeps_the_first_documents(model, lists):
    found = rw.cutoff(model, lists[100:], keep="nDCG@5 lost<=0.1", by="rank")
    shown = model.rank(lists[:10], cutoff=found)
    assert shown["rank"].max() == found.value
    assert len(shown) == 10 * found.value
    assert found.bound.side == "at most"
    assert 0 <= found.estimate <= 0.1


def test_ties_at_the_threshold_are_kept_together(lists):
    scores = lists.X[:, 0].round(0)
    found = rw.cutoff(scores, lists, keep="recall>=0.8", grid=np.unique(scores))
    kept = found.kept(lists, scores)
    assert found.value in scores
    assert not set(scores[kept]) & set(scores[~kept])


def test_standardized_scores_do_not_mind_a_scale_of_each_query(model, lists):
    owner, scores = lists.query_of_row, model.predict(lists)
    other = scores * np.exp(np.arange(len(lists)) % 7 - 3.0)[owner] + (np.arange(len(lists)) % 5 * 100.0)[owner]
    one, two = (rw.cutoff(each, lists, keep="recall>=0.8", by="standardized") for each in (scores, other))
    assert one.value == two.value
    assert (one.kept(lists, scores) == two.kept(lists, other)).mean() > 0.999
    raw = rw.cutoff(other, lists, keep="recall>=0.8")
    assert raw.share_kept > one.share_kept


def test_groups_have_cut_offs_of_their_own_that_hold_together(model, lists):
    part = lists[100:]
    names = np.arange(len(part)) % 2
    found = rw.cutoff(model, part, keep="recall>=0.7", groups=names)
    called = rw.cutoff(model, part, keep="recall>=0.7", groups=lambda query: "all")
    assert list(found) == [0, 1]
    assert list(called) == ["all"]
    assert {one.bound.terms["delta"] for one in found.values()} == {0.025}
    assert called["all"].bound.terms["delta"] == 0.05
    assert "of group 1" in found[1].bound.bounds
    assert "for which it is defined" not in found[1].bound.bounds  # what other groups lack is not said of this one
    alone = rw.cutoff(model, part[names == 1], keep="recall>=0.7", delta=0.025)
    assert alone.value == found[1].value
    with pytest.raises(DataError, match="groups must name one group for each of 300 queries, got 2"):
        rw.cutoff(model, part, keep="recall>=0.7", groups=["a", "b"])


def test_repeated_and_known_queries_make_it_more_careful(model, lists):
    part = lists[100:220]
    plain = rw.cutoff(model, part, keep="recall>=0.7")
    twice = rw.cutoff(model, rw.Queries.concat([part, part], rename=True), keep="recall>=0.7")
    assert twice.value <= plain.value
    assert "240 of the 240 calibration queries have the same content as others" in twice.notes[0]
    known = rw.cutoff(model, lists[90:220], keep="recall>=0.7")
    assert "10 of the 130 calibration queries" in known.notes[0]
    assert known.bound.terms["optional"] == 10
    with pytest.raises(DataError, match="all 50 calibration queries were used in training"):
        rw.cutoff(model, lists[:50], keep="recall>=0.7")
    changed = part.with_labels(np.minimum(part.y + 1, 4))
    trained_on = rw.RidgeRanker(n_jobs=1).fit(part)
    with pytest.raises(DataError, match="the calibration has changed copies"):
        rw.cutoff(trained_on, changed, keep="recall>=0.7")


def test_a_cut_off_belongs_to_one_model_and_one_scaling(found, model, lists):
    other = rw.RidgeRanker(alpha=2.0, n_jobs=1).fit(lists[:100])
    for refused in (
        lambda: other.rank(lists, cutoff=found),
        lambda: rw.export(other, "sql", cutoff=found),
        lambda: rw.certify(lists[100:], other, cutoff=found),
    ):
        with pytest.raises(RankwiseError, match="the cut-off belongs to another model than this RidgeRanker"):
            refused()
    scaled = rw.Scaler().fit(lists[:100]).transform(lists)
    with pytest.raises(RankwiseError, match="calibrated on raw queries, and these are scaled"):
        model.rank(scaled, cutoff=found)
    on_scaled = rw.RidgeRanker(alpha=1.0, n_jobs=1).fit(scaled[:100])
    its_own = rw.cutoff(on_scaled, scaled[100:], keep="recall>=0.8")
    assert len(on_scaled.rank(scaled, cutoff=its_own))
    with pytest.raises(RankwiseError, match="calibrated on scaled queries, and these are raw"):
        on_scaled.rank(lists, cutoff=its_own)
    again = rw.Scaler().fit(lists[100:]).transform(lists)
    with pytest.raises(RankwiseError, match="these were scaled by another Scaler"):
        on_scaled.rank(again, cutoff=its_own)


def test_what_calibrated_certifies_the_ranker_and_not_the_lists_that_are_cut(found, model, lists):
    part = lists[100:]
    assert rw.certify(part, model).headline is not None
    refused = rw.certify(part, model, cutoff=found)
    assert refused.headline is None
    assert "all 300 hold-out queries were used in training or calibrated the cut-off" in refused.missing
    fresh = rw.make_lists(100, documents=12, features=5, random_state=7)
    whole, cut = (rw.certify(fresh, model, "R@12", **how) for how in ({}, {"cutoff": found}))
    assert whole.headline.terms["mean"] == 0
    expected = np.where(found.kept(fresh, model.predict(fresh)), model.predict(fresh), -math.inf)
    assert cut.headline.terms["mean"] == pytest.approx(1 - rw.evaluate(fresh, expected, ["R@12"]).mean["R@12"])
    assert found.rule in cut.about


def test_it_is_written_and_read_with_everything_that_it_knows(found, model, lists, tmp_path):
    found.save(tmp_path / "cutoff.json")
    again = Cutoff.load(tmp_path / "cutoff.json")
    assert again.to_dict() == found.to_dict()
    assert (again.value, repr(again)) == (found.value, repr(found))
    assert (again.calibrated_on.marks == found.calibrated_on.marks).all()
    assert (
        model.rank(lists[:5], cutoff=again)["docid"].tolist() == model.rank(lists[:5], cutoff=found)["docid"].tolist()
    )
    everything = rw.cutoff(model, lists[100:130], keep="recall>=0.99")
    assert everything.vacuous
    assert Cutoff.from_json(everything.to_json()).value == -math.inf
    assert "no cut was shown to meet the demand" in repr(everything)
    nothing = rw.cutoff(model, lists[100:130], keep="precision>=0.95", by="rank")
    assert nothing.rule == "keep no document"
    document = json.loads(found.to_json())
    for broken, message in (
        (document | {"cutoff": 2}, "cut-off layout 2 requires a newer version"),
        (document | {"value": "nan"}, "this is not a cut-off"),
        (document | {"by": "size"}, "this is not a cut-off"),
        ({"cutoff": 1}, "this is not a cut-off"),
        ([], "this is not a cut-off"),
    ):
        (tmp_path / "broken.json").write_text(json.dumps(broken))
        with pytest.raises(FileFormatError, match=message):
            Cutoff.load(tmp_path / "broken.json")
    with pytest.raises(FileFormatError, match="does not exist"):
        Cutoff.load(tmp_path / "none.json")
    (tmp_path / "broken.json").write_bytes(b"\xff{")
    with pytest.raises(FileFormatError, match="is not a cut-off"):
        Cutoff.load(tmp_path / "broken.json")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"delta": 1.5}, "delta must be between 0 and 1, got 1.5"),
        ({"by": "size"}, "by must be one of 'score', 'standardized', 'rank', got 'size'"),
        ({"keep": "recall>0.9"}, "keep must be a demand"),
        ({"grid": []}, "grid must hold finite thresholds"),
        ({"grid": [0.5], "by": "rank"}, "grid must hold numbers of documents, 1 or more"),
        ({"grid": ["a"]}, "grid must hold numbers"),
        ({"keep": "nDCG@10>=0.99"}, "cannot be shown: whole lists have 0.[0-9]{3} on average"),
        ({"keep": "recall(rel=9)>=0.5"}, r"R\(rel=9\) is undefined for every calibration query"),
        ({"model": [1.0, math.nan]}, "needs one finite score for each of 3,600 documents"),
        ({"calibration": "unjudged"}, "labels"),
        ({"train": 3}, "train must be Queries"),
    ],
)
def test_wrong_uses_say_what_is_wrong(wrong, message, model, lists):
    given = {"model": model, "calibration": lists[100:], "keep": "recall>=0.8"} | wrong
    if given["calibration"] == "unjudged":
        given["calibration"] = lists[100:].with_labels(None)
    with pytest.raises(RankwiseError, match=message):
        rw.cutoff(given.pop("model"), given.pop("calibration"), **given)


def test_queries_without_a_relevant_document_count_for_precision_alone(lists):
    scores, empty = lists.X[:, 0], lists.with_labels(np.where(lists.query_of_row % 2, 0.0, lists.y))
    recall, precision = (rw.cutoff(scores, empty, keep=keep) for keep in ("recall>=0.7", "precision>=0.3"))
    assert recall.bound.terms["n"] < 210
    assert precision.bound.terms["n"] == 400
    assert "with a relevant document" in recall.bound.bounds
    assert "with a relevant document" not in precision.bound.bounds


def test_it_draws_share_estimate_and_bound_against_the_cut(found):
    pytest.importorskip("matplotlib")
    figure = found.plot()
    above, below = figure.axes
    assert [line.get_label() for line in above.lines[:2]] == [
        "mean of the calibration queries",
        "lower bound for each cut alone",
    ]
    assert found.rule in below.get_title(loc="left")
    assert (np.diff(found.curve["kept"]) <= 0).all()
    assert (found.curve["bound"] <= found.curve["estimate"]).all()
