"""What the liars would be: that of the capped one is true to it, the others' are TopHinge's own."""

import numpy as np

from tests.oracles.losses_top_hinge import top_hinge


def capped(loss, s, labels):
    value, gradient = top_hinge(loss, s, labels)
    return (value, gradient) if value < 3 else (3.0, np.zeros(len(s)))


DEFINITIONS = {
    "TopHingeTame": top_hinge,
    "TopHingeNarrow": top_hinge,
    "TopHingeBoastful": top_hinge,
    "TopHingeCapped": capped,
    "TopHingeHalf": top_hinge,
    "TopHingeFirst": top_hinge,
}
