"""L2: Ctrl-C while numba looks up the address of a function that a kernel takes."""

import sys

import numpy as np
import pytest

import rankwise as rw
from rankwise._kernels.machine.jit import Driver


class AtCall:
    """Ctrl-C at the first call of a function of this name."""

    def __init__(self, name):
        self.name, self.reached = name, False

    def __enter__(self):
        sys.settrace(self._enter)
        return self

    def _enter(self, frame, event, argument):
        if frame.f_code.co_name == self.name:
            sys.settrace(None)
            self.reached = True
            raise KeyboardInterrupt

    def __exit__(self, *error):
        sys.settrace(None)


@pytest.mark.parametrize("name", ["_numba_unpickle", "_get_wrapper_address", "_get_jit_address"])
def test_l2_ctrl_c_is_no_type_error(name):
    queries = rw.make_lists(5, random_state=0)
    rw.evaluate(queries, queries.X[:, 0], n_jobs=1)  # compiled
    with AtCall(name) as call:
        try:
            rw.evaluate(queries, queries.X[:, 0], n_jobs=1)
        except KeyboardInterrupt:
            pass
        else:
            assert not call.reached, "Ctrl-C was lost"
    if name == "_numba_unpickle":
        assert call.reached, "numba no longer calls Python back there"


def test_l2_other_type_errors_stay_what_they_are():
    def fails(*given):
        raise TypeError(*given)

    with pytest.raises(TypeError, match="another"):
        Driver(fails)("another")
    with pytest.raises(KeyboardInterrupt):
        Driver(fails)("_get_jit_address() missing 1 required positional argument: 'sig'")
    assert Driver(np.add)(1, 2) == 3
    assert Driver(np.add).nin == 2
