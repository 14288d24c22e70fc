"""Losses that :func:`~rankwise.losses.pair_loss` builds from a function of one number."""

import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from rankwise.losses import Loss, pair_loss


@dataclass(frozen=True, kw_only=True, repr=False)
class SquaredPairs(Loss):
    """(1 + x)^2 over pairs, as a mean or as a sum."""

    per_pair: bool = True

    name = "SquaredPairs"
    convex = smooth = document_weights = True
    kernel, weighted_kernel = pair_loss(lambda x: (1.0 + x) ** 2, lambda x: 2.0 * (1.0 + x))

    def params(self):
        return (float(self.per_pair),)


LABELS = [2, 0, 1, 0, 2]
SCORES = [0.5, -0.25, 1.0, 2.0, -1.5]


def by_definition(s, labels, weight):
    every = range(len(s))
    pairs = {(i, j): weight[i] * weight[j] for i in every for j in every if labels[i] > labels[j]}
    gradient = np.zeros(len(s))
    for (i, j), w in pairs.items():
        gradient[i] -= w * 2 * (1 + s[j] - s[i])
        gradient[j] += w * 2 * (1 + s[j] - s[i])
    return sum(w * (1 + s[j] - s[i]) ** 2 for (i, j), w in pairs.items()), gradient, sum(pairs.values())


@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 0.0, 0.5, 3.0]])
@pytest.mark.parametrize("per_pair", [True, False])
def test_value_and_gradient_are_those_of_the_definition(per_pair, weight):
    value, gradient = SquaredPairs(per_pair=per_pair)(SCORES, LABELS, weight)
    total, slopes, pairs = by_definition(SCORES, LABELS, [1.0] * 5 if weight is None else weight)
    divisor = pairs if per_pair else 1.0
    assert value == pytest.approx(total / divisor, rel=1e-14)
    np.testing.assert_allclose(gradient, slopes / divisor, rtol=1e-14, atol=1e-15)


def test_a_document_of_weight_two_counts_as_two():
    twice, _ = SquaredPairs()([*SCORES, SCORES[0]], [*LABELS, LABELS[0]])
    weighted, _ = SquaredPairs()(SCORES, LABELS, [2.0, 1.0, 1.0, 1.0, 1.0])
    assert twice == pytest.approx(weighted, rel=1e-14)


def test_a_query_without_pairs_has_loss_0():
    value, gradient = SquaredPairs()([1.0, 2.0], [1, 1])
    assert value == 0.0
    assert gradient.tolist() == [0.0, 0.0]


TWO = """
import sys
from dataclasses import dataclass
from rankwise._kernels.machine import compile_log
from rankwise.losses import Loss, pair_loss

def squared(margin):
    @dataclass(frozen=True, kw_only=True, repr=False)
    class Squared(Loss):
        name = f"Squared{margin}"
        convex = True
        kernel, weighted_kernel = pair_loss(lambda x: (margin + x) ** 2, lambda x: 2.0 * (margin + x))

    return Squared()

values = [squared(float(margin))([0.0, 0.0], [1, 0])[0] for margin in sys.argv[1:]]
print(values, {one.source for one in compile_log.record if one.kernel.endswith(".pair_formula")})
"""


def test_kernels_are_cached_on_disk_and_told_apart(tmp_path):
    def run(*margins):
        script = tmp_path / "two.py"
        script.write_text(TWO)
        variables = {**os.environ, "RANKWISE_CACHE_DIR": str(tmp_path / "cache"), "RANKWISE_PACK": "0"}
        command = [sys.executable, str(script), *margins]
        return subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout.strip()

    # as numba counts functions, 3 and 5 would have one symbol: each is the first that its process compiles after 1
    assert run("1") == "[1.0] {'compiler'}"
    assert run("1", "3").startswith("[1.0, 9.0]")
    assert run("1", "5").startswith("[1.0, 25.0]")
    assert run("5", "1", "3") == "[25.0, 1.0, 9.0] {'cache'}"
    assert run("3", "1", "5") == "[9.0, 1.0, 25.0] {'cache'}"
