"""Digests tell numbers from words, and name what differs."""

import numpy as np

import rankwise as rw
from experiments import bits

DATA = {"train": bits.make_queries(1, 30, 8), "in_memory": bits.make_queries(1, 30, 8), "holdout": None}


def test_a_fit_has_the_digests_of_the_same_fit_and_not_of_another():
    one, same, other = (bits.digests(rw.RidgeRanker(alpha=alpha), **DATA) for alpha in (1.0, 1.0, 1.5))
    assert list(bits.differences({"A": one}, {"A": same, "B": other})) == []
    found = list(bits.differences({"A": one}, {"A": other}))
    assert {"A: weights differ", "A: scores differ", "A: export to c differs"} <= set(found)
    assert next(bits.differences({"A": one}, {})) == "A: weights are missing"


def test_one_bit_of_an_array_anywhere_below_a_fit_is_seen():
    value = {"a": [np.arange(3.0)], "b": ("x", {"c": [1.5, 2.5]})}
    before = sorted(bits.arrays_below(value, set()))
    assert len(before) == 2
    value["a"][0][1] = np.nextafter(1.0, 2.0)
    assert len(set(before) ^ set(bits.arrays_below(value, set()))) == 2


def test_changed_words_are_told_from_changed_numbers():
    texts = ("// of weights\nreturn 0.5 * x;", "// of coefficients\nreturn 0.5 * x;", "// of weights\nreturn 0.25 * x;")
    one, words, number = ({"export to c": bits.of_files({"model.c": text})} for text in texts)
    assert list(bits.differences({"A": one}, {"A": words})) == ["A: export to c differs in words only"]
    assert list(bits.differences({"A": one}, {"A": number})) == ["A: export to c differs"]
