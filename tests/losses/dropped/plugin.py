"""For a run of pytest with ``-p``: as if the files beside this one had been dropped into the project's own folders."""

from pathlib import Path

from hypothesis import HealthCheck, Phase, settings

import rankwise.losses
import tests.oracles

rankwise.losses.__path__.append(str(Path(__file__).parent / "loss"))
tests.oracles.__path__.append(str(Path(__file__).parent / "oracle"))

# Most of the checks are meant to fail here, and nobody reads the examples: they need not be made small.
settings.register_profile(
    "dropped",
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
