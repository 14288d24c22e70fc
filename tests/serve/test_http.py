"""The interface over a real socket: rankings, feedback, changes, questions, tokens; and clients that retry."""

import asyncio
import json
import threading

import numpy as np
import pytest
from openapi_spec_validator import validate

import rankwise as rw
from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.serve.client import AsyncClient, Client, ServiceError
from rankwise.serve.operations import OPERATIONS, description
from rankwise.serve.service import RequestLimits, Service
from rankwise.serve.tokens import Tokens, add_token
from tests.serve.running import IDS, NAMES, Raw, learner, lists, saved, serving


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("http")
    files = saved(folder) | saved(folder, "plain", learner(width=3)) | saved(folder, "fixed", _fixed())
    service = Service(
        folder / "state.db", files, limits=RequestLimits(body=200_000, documents=50, seconds=0.5, wait=2.0)
    )
    with serving(service) as address:
        yield address


def _fixed():
    return rw.RankBoost(rounds=4).fit(rw.make_lists(20, features=3, random_state=1))


@pytest.fixture(scope="module")
def raw(url):
    return Raw(url)


@pytest.fixture
def client(url):
    with Client(url, attempts=3) as client:
        yield client


X, Y = next(lists(1))


# --------------------------------------------------------------------------------------------------- ranking


def test_a_ranking_has_the_scores_of_the_model(client, tmp_path):
    weights = np.array([0.5, -1.0, 2.0])
    rw.LinearModel.of(weights).save(tmp_path / "linear.rankwise")
    client.upload("linear", (tmp_path / "linear.rankwise").read_bytes())
    for x in (X, X.astype(float), X.tolist()):
        found = client.rank(IDS, x, model="linear")
        scores = dict(zip(IDS, rw.LinearModel.of(weights).predict(X.astype(float)), strict=True))
        assert [one["id"] for one in found["items"]] == sorted(IDS, key=lambda id: -scores[id])
        assert {one["id"]: one["score"] for one in found["items"]} == scores


def test_features_may_come_by_name(client, raw):
    named = {id: dict(zip(NAMES, row, strict=True)) for id, row in zip(IDS, X.tolist(), strict=True)}
    one, two = client.rank_items(named, model="news"), client.rank(IDS, X.tolist(), model="news")
    assert one["items"] == two["items"]
    status, problem = raw.post("/v1/rank", {"items": [{"id": "a", "features": {"other": 1}}], "model": "news"})
    assert status == 422
    assert "no feature 'other'" in problem["detail"]
    status, problem = raw.post("/v1/rank", {"items": [{"id": "a", "features": {"bm25": 1}}], "model": "news"})
    assert status == 422  # a feature that is not there is NaN, which this ranker does not take
    status, problem = raw.post("/v1/rank", {"items": [{"id": "a", "features": {"bm25": 1}}], "model": "plain"})
    assert "has no feature names" in problem["detail"]


def test_lines_of_json_are_ranked_one_by_one(raw):
    line = json.dumps({"ids": IDS, "x": X.tolist(), "model": "news"}).encode()
    status, found = raw("POST", "/v1/rank", line + b"\n\n" + line + b"\n", content_type="application/x-ndjson")
    answers = [json.loads(one) for one in found.splitlines()]
    assert (status, [len(one["items"]) for one in answers]) == (200, [6, 6])
    assert len({one["ranking"] for one in answers}) == 2


def test_a_ranking_explains_itself(client):
    found = client.rank(IDS, X, model="news", explain=True)
    assert set(found["items"][0]["adds"]) == set(NAMES)
    scores = [one["score"] for one in found["items"]]
    adds = [sum(one["adds"].values()) for one in found["items"]]
    np.testing.assert_allclose(adds, np.array(scores) - np.mean(scores), atol=1e-9)


def test_rankers_of_any_kind_are_served(client):
    found = client.rank(IDS, X, model="fixed")
    assert [one["score"] for one in found["items"]] == sorted((one["score"] for one in found["items"]), reverse=True)


def test_what_was_learned_is_read_after_it_was_written(client):
    for x, y in lists(10, seed=4):
        shown = client.rank(IDS, x, model="news")
        seq = client.feedback(shown["ranking"], grades=y)["seq"]
        assert client.rank(IDS, x, model="news", min_seq=seq)["version"] >= seq


def test_an_event_that_is_not_there_is_not_waited_for(raw):
    status, problem = raw.post("/v1/rank?min_seq=999999999", {"ids": IDS, "x": X.tolist(), "model": "news"})
    assert (status, problem["retry"]) == (409, True)


@pytest.mark.parametrize(
    ("told", "status", "sentence"),
    [
        (b"{", 400, "truncated"),
        (b"", 400, "truncated"),
        (b"\xff\xfe", 400, "malformed"),
        (b"[" * 100_000, 422, "Expected `object`"),
        (b'{"ids": ["a"], "x": [[NaN, 1, 2]]}', 400, ""),
        (b'{"ids": ["a"], "x": [[1e999, 1, 2]]}', 422, "out of range"),
        ({"ids": ["a"], "x": [["1", 2, 3]]}, 422, "Expected `float`, got `str`"),
        ({"ids": ["a"], "x": [[1, 2]], "model": "news"}, 422, "3 features for each of 1 ids, got 1 x 2"),
        ({"ids": ["a"], "x": [[1, 2, 3], [1]], "model": "news"}, 422, "x must be a matrix"),
        ({"ids": ["a", "a"], "x": [[1, 2, 3]] * 2, "model": "news"}, 422, "distinct"),
        ({"ids": ["a"], "model": "news"}, 422, "ids and x"),
        ({"ids": ["a"] * 51, "x": [[1, 2, 3]] * 51, "model": "news"}, 413, "at most 50 documents"),
        ({"ids": ["a"], "x": [[1, 2, 3]], "model": "none"}, 404, "no model 'none'"),
        ({"ids": ["a"], "x": [[1, 2, 3]], "model": "../../etc/passwd"}, 422, "matching regex"),
        ({"ids": ["a"], "x": [[1, 2, 3]], "more": 1}, 422, "unknown field `more`"),
        ({"ids": [""], "x": [[1, 2, 3]]}, 422, "length >= 1"),
        ([1], 422, "Expected `object`"),
        ({"items": [], "ids": [], "x": []}, 422, "got both"),
    ],
)
def test_malformed_requests_are_refused_in_a_sentence(raw, told, status, sentence):
    found, problem = raw.post("/v1/rank", told)
    assert found == status
    assert sentence in problem["detail"]
    assert problem["request"]


def test_lists_without_documents_are_ranked(client):
    assert client.rank([], [], model="news")["items"] == []


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"no line", 400), (b'{"ids":["a"]}\n123', 422), (b'{"ids":[]}\n', 422), (b'{"ids":["a"]}\n' + b"\0" * 8, 422)],
)
def test_binary_bodies_that_do_not_fit_are_refused(raw, body, status):
    found, _ = raw("POST", "/v1/rank", body, content_type="application/vnd.rankwise.f32")
    assert found == status


def test_not_a_number_in_a_binary_body_is_refused_by_name(raw):
    body = b'{"ids":["a"],"model":"news"}\n' + np.float32([1, np.nan, 2]).tobytes()
    status, problem = raw("POST", "/v1/rank", body, content_type="application/vnd.rankwise.f32")
    assert status == 422
    assert "age" in problem["detail"] or "feature" in problem["detail"]


# --------------------------------------------------------------------------------------------------- feedback


def test_feedback_is_taken_one_by_one_in_arrays_and_in_lines(client, raw):
    shown = [client.rank(IDS, x, model="news")["ranking"] for x, _ in lists(5, seed=6)]
    assert client.feedback(shown[0], grades={"d1": 2}, id="one")["new"]
    assert not client.feedback(shown[0], grades={"d1": 2}, id="one")["new"]
    with pytest.raises(ServiceError, match="different content") as refused:
        client.feedback(shown[0], grades={"d1": 3}, id="one")
    assert refused.value.status == 409
    many = [{"id": f"many {number}", "ranking": one, "clicks": ["d2"]} for number, one in enumerate(shown[1:])]
    found = client.feedback_many([*many, many[0], {"id": "wrong", "ranking": shown[1], "clicks": ["none"]}])
    assert [one.get("new", False) for one in found] == [True] * 4 + [False] * 2
    assert found[4]["seq"] == found[0]["seq"]
    assert (found[5]["status"], "no document 'none'" in found[5]["error"]) == (422, True)
    closed = client.close_ranking(shown[1])
    assert closed["new"]
    assert not client.close_ranking(shown[1])["new"]
    lines = b"\n".join(json.dumps({"id": f"line {n}", "ranking": shown[2], "clicks": []}).encode() for n in range(3))
    status, _ = raw("POST", "/v1/feedback", lines, content_type="application/x-ndjson")
    assert status == 200


def test_feedback_of_many_connections_is_committed_in_groups(url):
    with Client(url) as client:
        before = client.status()["counts"]["commits"]
        shown = [client.rank(IDS, x, model="plain")["ranking"] for x, _ in lists(200, seed=8)]
        found = []

        def send(part):
            with Client(url) as own:
                found.extend(own.feedback(one, grades=Y, id=one)["seq"] for one in part)

        threads = [threading.Thread(target=send, args=(shown[number::8],)) for number in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert len(set(found)) == 200
        assert client.status()["counts"]["commits"] - before < 200


def test_s3_ids_of_the_service_are_its_own_everywhere(client, raw, tmp_path):
    """Taken ids of the service would keep a ranking from ever being closed, and its clicks from being learned."""
    one, two = (client.rank(IDS, X, model="news")["ranking"] for _ in range(2))
    client.feedback(two, clicks=["d1"])
    taken = f"rankwise:close:{two}"
    rw.LinearModel.of([1.0, 2.0, 3.0]).save(tmp_path / "other.rankwise")
    model = (tmp_path / "other.rankwise").read_bytes()
    began = {"name": "mine", "kind": "shadow", "model": "news", "challenger": "plain"}
    for id in (taken, "rankwise:", "x" * 201):
        for path, told in [
            ("/v1/feedback", {"id": id, "ranking": one, "clicks": ["d1"]}),
            (f"/v1/rankings/{one}/close", {"id": id}),
            ("/v1/models/news:freeze", {"id": id}),
            ("/v1/experiments", {"id": id, **began}),
            ("/v1/experiments/mine:stop", {"id": id}),
        ]:
            assert raw.post(path, told)[0] == 422, (path, id)
        assert raw("POST", f"/v1/models/other?id={id}", model, content_type="application/octet-stream")[0] == 422
    assert client.close_ranking(two)["new"]


def test_s7_refused_feedback_leaves_nothing_behind(client, raw):
    """The corrected event must learn from its own features, not from those of the refused one."""
    wrong = {"id": "s7", "ranking": "s7 ranking", "ids": IDS, "x": np.ones_like(X).tolist(), "grades": [1.0]}
    assert raw.post("/v1/feedback", wrong)[0] == 422
    assert raw.post("/v1/feedback", {"id": "s7", "ranking": "s7 ranking", "clicks": ["d1"]})[0] == 409
    right = wrong | {"x": X.tolist(), "grades": Y}
    assert raw.post("/v1/feedback", right)[1]["new"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"ids": IDS, "x": X.tolist()}, 200),
        ({"ids": IDS[::-1], "x": X[::-1].tolist()}, 200),  # the same documents: clicks come by id
        ({"ids": IDS[::-1], "x": X[::-1].tolist(), "clicks": None, "grades": Y}, 409),  # grades have no ids
        ({"ids": IDS, "x": (X + 1).tolist()}, 409),
        ({"ids": IDS[:5], "x": X[:5].tolist()}, 409),
        ({"ids": [*IDS[:5], "other"], "x": X.tolist()}, 409),
        ({"ids": [*IDS, "more"], "x": [*X.tolist(), [0.0, 0.0, 0.0]]}, 409),
        ({"model": "plain"}, 409),
        ({"model": "news"}, 200),
    ],
)
def test_s7_feedback_on_other_documents_than_were_shown_is_a_conflict(client, raw, change, status):
    shown = client.rank(IDS, X, model="news")
    told = {"id": shown["ranking"], "ranking": shown["ranking"], "clicks": ["d1"], "model": "news"} | change
    found, answer = raw.post("/v1/feedback", {name: one for name, one in told.items() if one is not None})
    assert found == status, answer


def test_s12_repeated_ids_are_found_in_one_pass():
    from rankwise.serve.service import _distinct

    compared = 0

    class Id(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    ids = [Id(f"d{number}") for number in range(2_000)]
    assert _distinct(ids) is ids
    with pytest.raises(DataError, match="distinct, got 'd7' twice"):
        _distinct([*ids, Id("d7")])
    assert compared < 20_000


def test_s13_explanations_are_limited_also_on_many_lines(tmp_path):
    limits = RequestLimits(explained=40)
    with serving(Service(tmp_path / "state.db", saved(tmp_path), limits=limits)) as url:
        raw, told = Raw(url), {"ids": IDS, "x": X.tolist(), "explain": True}
        assert raw.post("/v1/rank", told)[0] == 200
        line = json.dumps(told).encode()
        assert raw("POST", "/v1/rank", b"\n".join([line] * 2), content_type="application/x-ndjson")[0] == 200
        status, problem = raw("POST", "/v1/rank", b"\n".join([line] * 3), content_type="application/x-ndjson")
        assert (status, "at most 40 contributions" in problem["detail"]) == (413, True)
        many = {"ids": [f"{n}" for n in range(14)], "x": [[1.0, 2.0, 3.0]] * 14, "explain": True}
        status, problem = raw.post("/v1/rank", many)
        assert (status, "14 documents of 3 features" in problem["detail"]) == (413, True)


def test_s13_a_small_body_does_not_become_a_large_matrix(tmp_path):
    wide = rw.LinearModel.of(np.ones(1_000), feature_names=[f"f{n}" for n in range(1_000)])
    service = Service(tmp_path / "state.db", saved(tmp_path, "wide", wide), limits=RequestLimits(body=40_000))
    with serving(service) as url:
        items = [{"id": f"{n}", "features": {}} for n in range(21)]
        status, problem = Raw(url).post("/v1/rank", {"items": items})
        assert (status, "at most 20,000 values" in problem["detail"]) == (413, True)


def test_s13_long_work_is_not_done_in_the_event_loop(tmp_path, monkeypatch):
    """Large bodies, explanations, lines and features that feedback brings are worked on in other threads."""
    service, where = Service(tmp_path / "state.db", saved(tmp_path)), []
    for name in ("rank", "record"):
        real = getattr(service, name)
        monkeypatch.setattr(
            service, name, lambda *args, real=real: where.append(threading.current_thread().name) or real(*args)
        )
    with serving(service) as url:
        raw = Raw(url)
        small, many = {"ids": IDS, "x": X.tolist()}, 5_000
        raw.post("/v1/rank", small)
        raw.post("/v1/feedback", {"id": "a", "ranking": "none", "clicks": []})
        assert not any("asyncio" in name for name in where)  # threads of the pool are called so
        where.clear()
        raw.post("/v1/rank", small | {"explain": True})
        raw.post("/v1/rank", {"ids": [f"{n}" for n in range(many)], "x": np.ones((many, 3)).tolist()})
        raw("POST", "/v1/rank", json.dumps(small).encode(), content_type="application/x-ndjson")
        raw.post("/v1/feedback", {"id": "b", "ranking": "mine", "clicks": [], **small})
        assert len(where) == 4
        assert all("asyncio" in name for name in where)


@pytest.mark.parametrize("name", ["news\n", "a b", "", "-a", "x" * 65])
def test_s14_a_name_is_matched_to_its_end(raw, name):
    told = {"name": name, "kind": "shadow", "model": "news", "challenger": "plain"}
    assert raw.post("/v1/experiments", told)[0] == 422
    assert raw.post("/v1/rank", {"ids": IDS, "x": X.tolist(), "model": name})[0] == 422


def test_s14_a_model_is_served_under_a_name_that_can_be_asked_for(tmp_path):
    for name in ("two words", "news\n"):
        with pytest.raises(DataError, match="the name of a model must be"):
            Service(tmp_path / "state.db", {name: saved(tmp_path)["news"]})


def test_s15_scores_that_overflow_are_refused(client, raw, tmp_path):
    rw.LinearModel.of([1e300, 1.0, 1.0]).save(tmp_path / "steep.rankwise")
    client.upload("steep", (tmp_path / "steep.rankwise").read_bytes())
    told = {"ids": ["a", "b"], "x": [[1.0, 0.0, 0.0], [1e300, 0.0, 0.0]], "model": "steep"}
    for more in ({}, {"explain": True}):
        status, problem = raw.post("/v1/rank", told | more)
        assert (status, "'b'" in problem["detail"]) == (422, True)
    event = {"id": "steep", "ranking": "steep", "clicks": ["a"]}
    assert raw.post("/v1/feedback", told | event)[0] == 422


@pytest.mark.parametrize("brought", [False, True])
def test_s15_grades_that_no_measure_takes_are_refused_before_they_are_acknowledged(client, raw, brought):
    shown = client.rank(IDS, X, model="news")["ranking"]
    more = {"ids": IDS, "x": X.tolist()} if brought else {}
    told = {"id": shown, "ranking": f"{shown} {brought}" if brought else shown, **more}
    for grades in ({"d1": 1024}, [0, 0, 2000, 0, 0, 0]):
        status, problem = raw.post("/v1/feedback", told | {"grades": grades})
        assert (status, "overflows at label" in problem["detail"]) == (422, True)
    refused = next(one for one in client.models() if one["name"] == "news")["refused"]
    seq = raw.post("/v1/feedback", told | {"grades": {"d1": 30}})[1]["seq"]
    client.rank(IDS, X, model="news", min_seq=seq)
    assert next(one for one in client.models() if one["name"] == "news")["refused"] == refused


# --------------------------------------------------------------------------------------------------- questions


def test_every_question_is_answered(client, raw):
    names = {one["name"] for one in client.models()}
    assert {"news", "plain", "fixed"} <= names
    ledger = client.ledger("news")
    assert ledger["rounds"] > 0
    assert ledger["bounds"][0]["of"] == "mean risk of the iterates"
    assert raw("GET", "/v1/ledger?model=news&gamma=0.1")[1]["bounds"][-1]["statement"]
    for delta in ("x", "0", "1", "5", "nan", "inf"):
        assert raw("GET", f"/v1/ledger?delta={delta}")[0] == 422
    assert raw("GET", "/v1/ledger?model=news&gamma=1e-200")[0] == 200
    certificate = client.certificate("news")
    assert "at all times" in certificate["statement"]
    assert certificate["running"]["low"] <= certificate["running"]["mean"] <= certificate["running"]["high"]
    assert isinstance(client.versions("news"), list)
    assert client.experiments() == []
    assert client.healthy()
    assert raw("GET", "/healthz") == (200, {"status": "ok"})
    text = raw("GET", "/metrics")[1].decode()
    for name in ("rankwise_request_seconds_bucket", 'rankwise_version{model="news"}', "rankwise_risk_bound"):
        assert name in text
    assert raw("GET", "/")[1].startswith(b"<!doctype html>")
    assert raw("HEAD", "/healthz") == (200, b"")


def test_the_description_is_valid_and_describes_every_path(raw):
    status, found = raw("GET", "/openapi.json")
    assert status == 200
    validate(found)
    assert found == json.loads(json.dumps(description(OPERATIONS)))
    assert set(found["paths"]) == {one.path for one in OPERATIONS}
    assert found["paths"]["/v1/feedback"]["post"]["requestBody"]["content"].keys() == {
        "application/json",
        "application/x-ndjson",
    }


def test_changes_of_models_are_versions(client):
    assert client.change("plain", "freeze")["new"]
    assert next(one for one in client.models() if one["name"] == "plain")["frozen"]
    client.change("plain", "thaw")
    with pytest.raises(ServiceError, match="requires the version"):
        client.change("plain", "rollback")
    now = client.ledger("plain")["seq"]
    client.change("plain", "rollback", now)
    client.change("plain", "thaw")
    client.change("news", "promote")
    assert next(one for one in client.models() if one["default"])["name"] == "news"
    client.experiment("beside", "shadow", "news", "plain")
    assert client.rank(IDS, X)["model"] == "news"
    assert client.experiments()[0]["running"]
    client.stop_experiment("beside")
    assert not client.experiments()[0]["running"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/../../etc/passwd", 404),
        ("GET", "/%2e%2e/%2e%2e/etc/passwd", 404),
        ("GET", "//v1/models", 404),
        ("GET", "/v1/models/", 404),
        ("GET", "/v1/models/none", 404),
        ("GET", "/v1/models/..%2f..%2fetc", 404),
        ("POST", "/v1/rankings/%00/close", 409),
        ("POST", "/v1/models/none:freeze", 404),
        ("POST", "/v1/models/a%20b", 422),
        ("DELETE", "/v1/models", 405),
        ("GET", "/v1/rank", 405),
        ("PUT", "/v1/feedback", 405),
        ("OPTIONS", "/", 405),
    ],
)
def test_paths_and_methods_that_are_not_there(raw, method, path, status):
    assert raw(method, path)[0] == status


def test_a_body_of_an_unknown_kind_is_refused(raw):
    assert raw("POST", "/v1/rank", b"<a/>", content_type="application/xml")[0] == 415


def test_a_model_file_of_a_stranger_is_refused(raw):
    status, problem = raw("POST", "/v1/models/bad", b"\x08\0\0\0\0\0\0\0{}", content_type="application/octet-stream")
    assert status == 422
    assert "/tmp" not in problem["detail"]


def test_the_request_has_an_id_of_the_client_or_one_of_its_own(raw):
    import http.client

    for given, kept in (("abc-1", True), ("a b\t", False), ("x" * 100, False)):
        connection = http.client.HTTPConnection(raw.host)
        connection.request("GET", "/healthz", headers={"X-Request-Id": given})
        answer = connection.getresponse()
        answer.read()
        assert (answer.getheader("x-request-id") == given) == kept
        connection.close()


# --------------------------------------------------------------------------------------------------- tokens


def test_tokens_have_scopes_and_are_nowhere_in_the_clear(tmp_path, caplog):
    secret = add_token(tmp_path / "tokens", "shop", ["rank", "feedback"])
    reader = add_token(tmp_path / "tokens", "monitor", ["read"])
    assert secret not in (tmp_path / "tokens").read_text()
    assert (tmp_path / "tokens").stat().st_mode & 0o077 == 0
    service, tokens = Service(tmp_path / "state.db", saved(tmp_path)), Tokens(tmp_path / "tokens")
    with serving(service, tokens) as url, caplog.at_level("INFO"):
        raw = Raw(url)
        told = {"ids": IDS, "x": X.tolist()}
        assert raw.post("/v1/rank", told)[0] == 401
        assert raw.post("/v1/rank", told, authorization=f"Bearer {secret}x")[0] == 401
        assert raw.post("/v1/rank", told, authorization=f"Basic {secret}")[0] == 401
        assert raw.post("/v1/rank", told, authorization=f"Bearer {reader}")[0] == 403
        assert raw("GET", "/v1/models", authorization=f"Bearer {secret}")[0] == 403
        assert raw("POST", "/v1/models/news:freeze", authorization=f"Bearer {secret}")[0] == 403
        assert raw("GET", "/metrics")[0] == 401
        assert raw("GET", "/healthz")[0] == 200
        with Client(url, token=secret) as client:
            assert client.feedback(client.rank(IDS, X)["ranking"], grades=Y)["new"]
        (tmp_path / "tokens").write_text((tmp_path / "tokens").read_text().splitlines()[1] + "\n")
        tokens.reload()
        assert raw.post("/v1/rank", told, authorization=f"Bearer {secret}")[0] == 401
        (tmp_path / "tokens").write_text("malformed\n")
        with pytest.raises(FileFormatError, match="line 1"):
            tokens.reload()
        assert raw("GET", "/v1/models", authorization=f"Bearer {reader}")[0] == 200
    assert secret not in caplog.text
    refused = [one.fields for one in caplog.records if getattr(one, "fields", {}).get("status") == 403]
    assert [one["caller"] for one in refused] == ["monitor", "shop", "shop"]  # known tokens with the wrong scope
    with pytest.raises(RankwiseError, match="scopes among"):
        add_token(tmp_path / "tokens", "x", ["everything"])


@pytest.mark.parametrize("before", [b"", b"# ours\n", b"# ours", b"# ours\r\n"])
def test_s16_a_token_begins_a_new_line(tmp_path, before):
    (tmp_path / "tokens").write_bytes(before)
    secrets = [add_token(tmp_path / "tokens", name, ["read"]) for name in ("one", "two")]
    known = Tokens(tmp_path / "tokens")
    assert [known.caller(secret.encode()).name for secret in secrets] == ["one", "two"]


def test_s16_a_token_is_added_to_a_list_without_a_last_line_feed(tmp_path):
    first = add_token(tmp_path / "tokens", "one", ["read"])
    (tmp_path / "tokens").write_bytes((tmp_path / "tokens").read_bytes().rstrip())
    second = add_token(tmp_path / "tokens", "two", ["read"])
    known = Tokens(tmp_path / "tokens")
    assert [known.caller(secret.encode()).name for secret in (first, second)] == ["one", "two"]


def test_s6_a_client_with_a_wrong_token_hears_so_also_while_it_sends_much(tmp_path):
    add_token(tmp_path / "tokens", "shop", ["rank"])
    service, tokens = Service(tmp_path / "state.db", saved(tmp_path)), Tokens(tmp_path / "tokens")
    with serving(service, tokens) as url, Client(url, token="wrong", attempts=1) as client:
        for body in (b"small", b"x" * 8_000_000):
            with pytest.raises(ServiceError, match="not valid"):
                client.upload("mine", body)


def test_the_world_is_served_with_tokens_alone(tmp_path):
    from rankwise.serve.app import make_app
    from rankwise.serve.server import make_server

    service = Service(tmp_path / "state.db", saved(tmp_path))
    with pytest.raises(RankwiseError, match="requires --tokens"):
        make_server(make_app(service), "0.0.0.0", 0)
    service.close()


# --------------------------------------------------------------------------------------------------- clients


def test_the_client_of_event_loops_is_the_same(url):
    async def talk():
        async with AsyncClient(url) as client:
            shown = await asyncio.gather(*(client.rank(IDS, X, model="plain") for _ in range(5)))
            found = await asyncio.gather(*(client.feedback(one["ranking"], grades=Y) for one in shown))
            return sorted(one["new"] for one in found), await client.healthy()

    assert asyncio.run(talk()) == ([True] * 5, True)


def test_a_client_sends_the_same_event_again_after_a_lost_answer(url, monkeypatch):
    with Client(url) as client:
        shown = client.rank(IDS, X, model="plain")
        import http.client

        real, lost = http.client.HTTPResponse.read, []

        def read(self, *args):
            data = real(self, *args)
            if not lost:
                lost.append(data)
                raise ConnectionResetError("the answer was lost")
            return data

        monkeypatch.setattr(http.client.HTTPResponse, "read", read)
        found = client.feedback(shown["ranking"], grades=Y)
    assert not found["new"]  # the first attempt had been recorded
    assert json.loads(lost[0])["seq"] == found["seq"]


def test_a_service_that_is_not_there_is_a_sentence():
    with (
        pytest.raises(ServiceError, match=r"127\.0\.0\.1:9 did not answer"),
        Client("http://127.0.0.1:9", attempts=1) as client,
    ):
        client.models()
    with pytest.raises(RankwiseError, match="http://host:port"):
        Client("localhost")
