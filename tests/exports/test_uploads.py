"""What uploads a model: the requests, and a script whose curl sends exactly these."""

import json
import os
import subprocess

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import RankwiseError

CURL = """#!/bin/sh
for argument in "$@"; do printf '%s\\n' "$argument" >>"$SENT"; done
echo --- >>"$SENT"
case "$*" in *_ltr) exit 22;; esac
"""


@pytest.fixture(scope="module")
def model():
    queries = rw.Queries.from_arrays(np.eye(4), [0, 1, 2, 1], group=[4], feature_names=["a", "b", "c", "it's d"])
    return rw.RidgeRanker(alpha=1.0).fit(queries)


@pytest.mark.parametrize("engine", ["elasticsearch", "opensearch"])
def test_requests_make_the_store_the_set_and_the_model_in_this_order(model, engine):
    done = rw.export(model, engine, called="shop v1", featureset="set/1")
    assert [(one.method, one.path, one.file) for one in done.requests] == [
        ("PUT", "/_ltr", None),
        ("PUT", "/_ltr/_featureset/set%2F1", "featureset.json"),
        ("POST", "/_ltr/_featureset/set%2F1/_createmodel", "model.json"),
    ]
    assert json.loads(done.files["model.json"])["model"]["name"] == "shop v1"
    assert [one["path"] for one in done.to_dict()["requests"]] == [one.path for one in done.requests]
    assert rw.export(model, engine, called="shop").requests[1].path == "/_ltr/_featureset/shop"
    assert rw.export(model, "ranklib").requests == ()
    with pytest.raises(RankwiseError, match="featureset must be the name of a feature set, got ''"):
        rw.export(model, engine, featureset="")


def test_the_script_sends_these_requests_and_goes_on_where_the_store_is_there_already(model, tmp_path):
    done = rw.export(model, "opensearch", tmp_path / "out", called="it's; v1")
    (tmp_path / "curl").write_text(CURL)
    (tmp_path / "curl").chmod(0o755)
    sent = tmp_path / "sent"
    settings = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "SENT": str(sent)}
    script = ["sh", str(tmp_path / "out" / "upload.sh")]
    ran = subprocess.run(
        [*script, "http://h:9200", "-u", "me"], env=settings, capture_output=True, text=True, check=True
    )
    assert "it may be there already" in ran.stdout
    calls = [call.splitlines() for call in sent.read_text().split("---\n") if call]
    assert len(calls) == len(done.requests)
    for call, request in zip(calls, done.requests, strict=True):
        assert call[call.index("-X") + 1] == request.method
        assert f"http://h:9200{request.path}" in call
        assert ("--data-binary" in call) == (request.file is not None)
        assert call[2:4] == ["-u", "me"]
        if request.file is not None:
            assert f"@{request.file}" in call
            json.loads((tmp_path / "out" / request.file).read_text())
    refused = subprocess.run(script, env=settings, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "give the address of the cluster" in refused.stderr
