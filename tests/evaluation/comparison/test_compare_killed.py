"""Killed by SIGKILL at any moment and started again, a comparison ends as one that was never disturbed."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

# One process that has everything imported and compiled forks a fresh child for every run, so that a moment is one of
# the comparison itself and not of its start.
PROGRAM = textwrap.dedent(
    """
    import json, os, shutil, signal, sys, time
    import numpy as np
    import rankwise as rw
    from rankwise import compare

    seed, moments, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    lists = rw.make_lists(30, documents=6, features=3, random_state=3)
    out = os.path.join(folder, "found.json")

    def whole_run(cells):
        rankers = {"ridge": rw.RidgeRanker(), "slam": rw.SLAMPerceptron()}
        rankers |= {"ada": rw.AdaRank(), "pair": "max-pair-perceptron"}
        grids = {"slam": {"epochs": [1, 2]}, "pair": {"averaging": ["none", "uniform"]}}
        found = compare(rankers, lists, ["nDCG@5", "AP"], folds=3, resume=cells, n_jobs=2, grids=grids)
        found.to_json(out)

    def child(cells):
        process = os.fork()
        if process == 0:
            try:
                whole_run(cells)
                os._exit(0)
            finally:
                os._exit(1)
        return process

    def told():
        with open(out) as file:
            document = json.load(file)
        for cell in document["cells"]:
            del cell["seconds"], cell["memory"]
        return document

    cells = os.path.join(folder, "cells")
    whole_run(cells)
    shutil.rmtree(cells)
    began = time.perf_counter()
    assert os.waitpid(child(cells), 0)[1] == 0
    length, expected = time.perf_counter() - began, told()
    random, left = np.random.default_rng(seed), []
    for _ in range(moments):
        shutil.rmtree(cells)
        os.unlink(out)
        process = child(cells)
        time.sleep(random.uniform(0, length))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.makedirs(cells, exist_ok=True)
        left.append(sum(name.endswith(".cell.rankwise") for name in os.listdir(cells)))
        assert os.waitpid(child(cells), 0)[1] == 0
        assert told() == expected
    print(json.dumps({"left": left, "cells": len(expected["cells"])}))
    """
)


def killed(tmp_path, seed, moments):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(seed), str(moments), str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "TERM": "dumb"},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_twenty_random_moments(tmp_path):
    found = killed(tmp_path, 0, 20)
    # the moments were spread over the run: some left nothing, some a part, and never a cell too many
    assert len(found["left"]) == 20
    assert max(found["left"]) <= found["cells"] == 12
    assert len(set(found["left"])) > 3


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_many_random_moments(tmp_path):
    killed(tmp_path, 1, 200)
