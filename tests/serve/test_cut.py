"""Rankings that are cut: by the cut-off of the version that ranks, and by no other."""

import numpy as np
import pytest

import rankwise as rw
from rankwise.serve.log import RequestError
from rankwise.serve.structs import ExperimentRequest, Feedback, RankRequest
from tests.serve.running import Service, saved, serving


@pytest.fixture(scope="module")
def lists():
    return rw.make_lists(300, documents=10, features=3, random_state=0)


@pytest.fixture(scope="module")
def model(lists):
    return rw.RidgeRanker(n_jobs=1).fit(lists[:60]._replace(feature_names=None))


@pytest.fixture
def query(lists):
    return {"ids": [f"d{row}" for row in range(10)], "x": lists[0].X.tolist()}


@pytest.mark.parametrize("by", ["score", "rank"])
def test_the_service_returns_what_the_cut_off_keeps(by, model, lists, query, tmp_path):
    cutoff = rw.cutoff(model, lists[60:]._replace(feature_names=None), keep="recall>=0.8", by=by)
    cutoff.save(tmp_path / "cutoff.json")
    service = Service(tmp_path / "state.db", saved(tmp_path, model=model), cutoffs=[tmp_path / "cutoff.json"])
    with serving(service) as url:
        from rankwise.serve.client import Client

        client = Client(url)
        whole = client.rank(query["ids"], query["x"])["items"]
        cut = client.rank(query["ids"], query["x"], cut=True)["items"]
        kept = cutoff.kept(lists[:1]._replace(feature_names=None), model.predict(lists[0].X))
        assert [one["id"] for one in cut] == [one["id"] for one in whole if kept[int(one["id"][1:])]]
        assert 0 < len(cut) < len(whole) == 10
        client.close()


def test_a_version_without_a_cut_off_is_refused(model, lists, query, tmp_path):
    learner = rw.SLAMPerceptron(measure="nDCG@10").partial_fit(lists[:20]._replace(feature_names=None))
    cutoff = rw.cutoff(learner, lists[60:]._replace(feature_names=None), keep="recall>=0.7", by="rank")
    service = Service(tmp_path / "state.db", saved(tmp_path, model=learner), cutoffs=[cutoff])
    try:
        shown = service.rank(RankRequest(**query, cut=True))
        assert len(shown.items) == cutoff.value
        grades = {name: float(place) for place, name in enumerate(query["ids"][:4])}
        service.feedback(Feedback("one", shown.ranking, grades=grades)).result(10)
        service.log.call(lambda: None).result(10)
        with pytest.raises(RequestError, match="version 2 of model 'news' has no cut-off"):
            service.rank(RankRequest(**query, cut=True))
        assert len(service.rank(RankRequest(**query)).items) == 10
    finally:
        service.close()


def test_interleaved_rankings_and_services_without_cut_offs_are_refused(model, lists, query, tmp_path):
    cutoff = rw.cutoff(model, lists[60:]._replace(feature_names=None), keep="recall>=0.8")
    files = saved(tmp_path, model=model) | saved(tmp_path, "other", rw.LinearModel.of(np.eye(3)[0]))
    service = Service(tmp_path / "state.db", files, cutoffs=[cutoff])
    try:
        with pytest.raises(RequestError, match="of model 'other' has no cut-off"):
            service.rank(RankRequest(**query, model="other", cut=True))
        service.experiment(ExperimentRequest("both", "interleave", "news", "other")).result(10)
        service.log.call(lambda: None).result(10)
        with pytest.raises(RequestError, match="cut must be false for rankings that are interleaved"):
            service.rank(RankRequest(**query, model="news", cut=True))
    finally:
        service.close()
    bare = Service(tmp_path / "bare.db", saved(tmp_path, model=model))
    try:
        with pytest.raises(RequestError, match="this service has no cut-off: start it with --cutoff FILE"):
            bare.rank(RankRequest(**query, cut=True))
    finally:
        bare.close()
