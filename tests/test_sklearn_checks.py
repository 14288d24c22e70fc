"""scikit-learn's own checks of estimators, for every ranker.

The checks call ``fit(X, y)`` and know no grouping, which a ranker must have. They run twice: on the ranker itself,
where those that fit must fail with the one error that says so, and on a ranker that takes all rows as one query if no
grouping is given, where all of them pass but those named in ``OTHER_WORDS`` and, for rankers that take no document
weights, those about ``sample_weight``.
"""

import warnings
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from rankwise.rankers._base import registered

# check -> why it does not apply although the grouping is given; what is raised instead
OTHER_WORDS = {
    "check_n_features_in_after_fitting": "asks for scikit-learn's sentence on another number of features",
    "check_fit2d_predict1d": "asks for the words 'Reshape your data'; the error says X.reshape(1, -1)",
    "check_dtype_object": "asks for a TypeError where X holds a dict; all errors of the package are ValueErrors",
}
# the checks that need no fit, or expect one to fail
WITHOUT_GROUPING = {
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_fit1d",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
}


def one_query_by_default(kind):
    """A subclass whose ``fit`` and ``score`` take all rows as one query if no grouping is given."""

    def grouped(method):
        def call(self, X, y=None, sample_weight=None, **given):
            if not given.keys() & {"group", "qid"}:
                given["group"] = [X.shape[0] if hasattr(X, "shape") else len(np.asarray(X))]
            return method(self, X, y, sample_weight=sample_weight, **given)

        return call

    made = type(
        f"OneQuery{kind.__name__}",
        (kind,),
        {"fit": grouped(kind.fit), "score": grouped(kind.score), "__module__": __name__},
    )
    return globals().setdefault(made.__name__, made)  # pickle looks for it here


KINDS = registered()


def one_of(kind):
    """An example that scores rows alone, as the checks do: they give no grouping to ``predict``."""
    return next(example for example in kind.examples() if not example.scores_by_query).get_params(deep=False)


def run(ranker):
    """What every check came to: None where it passed, else the error."""
    found = {}
    for estimator, check in estimator_checks_generator(ranker, legacy=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                check(estimator)
                found[check.func.__name__] = None
            except SkipTest:  # an environment variable that array API checks ask for
                continue
            except Exception as error:
                found[check.func.__name__] = error
    return found


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_ranker_passes_the_checks_once_rows_are_grouped(kind):
    ranker = one_query_by_default(kind)(**one_of(kind))
    found = run(ranker)
    assert len(found) > 30
    assert found.keys() >= OTHER_WORDS.keys()
    weighted = {name for name in found if "sample_weight" in name}
    assert len(weighted) > 4
    if not ranker.takes_document_weights:
        for name in weighted:
            error = found.pop(name)
            assert error is None or "takes no document weights" in f"{error} {error.__cause__} {error.__context__}"
    elif kind.name != "RidgeRanker":  # solvers end at a tolerance, and the check compares digits
        found = {name: error for name, error in found.items() if "equivalence" not in name}
    assert {name: error for name, error in found.items() if error is not None and name not in OTHER_WORDS} == {}
    sentences = {
        "check_n_features_in_after_fitting": "fitted on 4 features, got 1",
        "check_fit2d_predict1d": r"one document is X.reshape(1, -1)",
        "check_dtype_object": "X must hold numbers",
    }
    for name, sentence in sentences.items():
        error = found[name]
        assert sentence in f"{error} {error.__cause__} {error.__context__}", name


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_without_grouping_every_check_that_fits_meets_the_one_error(kind):
    found = run(kind.examples()[0])
    assert {name for name, error in found.items() if error is None} >= WITHOUT_GROUPING
    for name, error in found.items():
        if error is not None:
            told = f"{error} {error.__cause__} {error.__context__}"
            assert "needs the grouping of rows" in told or "doesn't check for NaN" in told, name
