"""The ``letor`` preset against what the official LETOR evaluator printed: all four decimals."""

import pytest

from experiments.letor_evaluator import MEASURES, measured, printed


@pytest.mark.parametrize("fold", range(1, 6))
def test_the_letor_preset_prints_what_the_official_evaluator_printed(data_folder, fold):
    expected = printed(data_folder)[fold]
    assert list(expected) == MEASURES
    assert len(MEASURES) == 22
    assert measured(data_folder, fold) == expected
