"""Alarms about features: they ring when values leave their usual range, and are silent before."""

import numpy as np
import pytest

from rankwise.cli.serve import _declare
from rankwise.serve.app import make_app
from rankwise.serve.drift import _FIRST, Drift
from rankwise.serve.service import Service
from rankwise.serve.structs import RankRequest
from tests.serve.running import IDS, saved


@pytest.fixture
def service(tmp_path):
    service = Service(tmp_path / "state.db", saved(tmp_path))
    yield service
    service.close()


def shown(service, X, times):
    """Rankings of these features, each of them looked at."""
    for _ in range(times):
        service.rank(RankRequest(ids=IDS[: len(X)]), np.asarray(X, np.float32))
        service.log.call(lambda: None).result(10)  # written, and looked at, before the next


def test_features_inside_of_the_training_range_are_no_alarm(service, tmp_path):
    training = tmp_path / "training.txt"
    training.write_text("0 qid:1 1:0 2:-1 3:5\n1 qid:1 1:1 2:1 3:7\n")
    _declare(service, training)
    shown(service, [[0.0, 1.0, 5.0], [1.0, -1.0, 7.0]], 30)
    assert service.alarms() == []
    assert service.drift.shares("news") == [0.0, 0.0, 0.0]


def test_a_feature_outside_of_the_training_range_rings_by_its_number(service, tmp_path):
    training = tmp_path / "training.txt"
    training.write_text("0 qid:1 1:0 2:-1 3:5\n1 qid:1 1:1 2:1 3:7\n")
    _declare(service, training)
    shown(service, [[0.5, 0.0, 6.0], [0.5, 1.5, 6.0]], 30)  # the second feature, in half of the documents
    (alarm,) = service.alarms()
    assert alarm == "news: feature 2 is outside its usual range in 13% of its recent values"
    assert service.drift.shares("news") == pytest.approx([0.0, 0.5 * (1 - 0.99**30), 0.0])
    app = make_app(service)
    assert app.api.status_of()["alarms"] == [alarm]
    assert b"\nrankwise_alarms 1.0\n" in app.metrics.text()


def test_training_queries_of_another_width_declare_nothing(service, tmp_path):
    training = tmp_path / "training.txt"
    training.write_text("0 qid:1 1:0 2:0\n1 qid:1 1:1 2:1\n")
    _declare(service, training)
    assert service.drift.shares("news") == []


def test_without_training_queries_the_first_rankings_are_the_usual_range():
    random, drift = np.random.default_rng(0), Drift()
    for _ in range(_FIRST):
        drift.look("news", random.uniform(size=(4, 2)))
    for _ in range(50):
        drift.look("news", random.uniform(0.1, 0.9, size=(4, 2)))
    assert drift.alarms() == []
    for _ in range(50):
        drift.look("news", np.array([[0.5, 2.0]]))
    (alarm,) = drift.alarms()
    assert alarm.startswith("news: feature 2 is outside")


def test_a_model_of_another_width_has_a_range_of_its_own():
    drift = Drift()
    drift.declare("news", np.zeros(2), np.ones(2))
    drift.look("news", np.full((1, 3), 9.0))
    drift.look("news", np.empty((0, 3)))
    assert drift.alarms() == []
    assert drift.shares("news") == [0.0, 0.0, 0.0]
