"""The recommendation of a report: the ranker to take, and those that the test queries do not show to be worse."""

import math
from typing import Any

from rankwise.evaluation.comparison.comparison import Comparison
from rankwise.evaluation.statistics.multiple_testing import correct
from rankwise.evaluation.statistics.paired import paired_test
from rankwise.guarantees.certificate import Certificate

_NAMED = 5  # rankers in one sentence


def recommendation(comparison: Comparison) -> dict[str, Any] | None:
    """The ranker to take, by the first measure.

    It is the winner on the validation part, unless the test queries show another ranker to be better; then, and where
    there is no winner, it is the ranker with the highest mean. It is tested against every other ranker. The p-values
    are corrected for all pairs of rankers, because the results decide which of the pairs are looked at.

    Parameters
    ----------
    comparison : Comparison
        The comparison.

    Returns
    -------
    dict or None
        The ranker, the sentence in two parts, and the ranker whose changes against the baseline are shown first; None
        for one ranker, or without a mean.
    """
    title = comparison.titles[0]
    means = {name: comparison.means[name][title] for name in comparison.rankers}
    order = sorted((name for name in means if not math.isnan(means[name])), key=lambda name: -means[name])
    if len(order) < 2:
        return None
    best = comparison.winner if comparison.winner in order else order[0]
    verdicts = _against(comparison, best, order)
    if "better" in verdicts.values():
        best = order[0]
        verdicts = _against(comparison, best, order)
    low, high = comparison.intervals[best][title]
    between = "" if math.isnan(low) else f", {comparison.level:.0%} interval {low:.3f} to {high:.3f}"
    role = ", the baseline" if best == comparison.baseline else ""
    close = [name for name, verdict in verdicts.items() if verdict != "worse"]
    return {
        "ranker": best,
        "lead": f"Take {best}{role}",
        "rest": f" ({title} {means[best]:.3f}{between}). {_others(comparison, close, len(verdicts))}",
        "shown": next(name for name in (best, *order) if name != comparison.baseline),
    }


def _against(comparison: Comparison, best: str, order: list[str]) -> dict[str, str]:
    """For each other ranker whether it is shown to be better or worse than ``best``."""
    title, about = comparison.titles[0], comparison.about
    result = comparison.results[best]
    others = [name for name in order if name != best]
    draws: dict[str, Any] = {"weight": result.weight, "random_state": about["random_state"]}
    found = [paired_test(comparison.results[name][title], result[title], about["test"], **draws) for name in others]
    unseen = len(order) * (len(order) - 1) // 2 - len(others)
    # pairs without this ranker count with the largest p, so the correction is never too small
    p_values = correct([*(one.p_value for one in found), *[1.0] * unseen], about["correction"])
    limit = 1 - comparison.level
    return {
        name: "not shown" if not p <= limit else "better" if one.difference > 0 else "worse"
        for name, one, p in zip(others, found, p_values, strict=False)
    }


def _others(comparison: Comparison, close: list[str], count: int) -> str:
    """The second sentence: who is not shown to be worse."""
    if not close:
        return "All others are shown to be worse." if count > 1 else "The other is shown to be worse."
    names = [f"{name} (the baseline)" if name == comparison.baseline else name for name in close]
    if len(names) > _NAMED:
        names = [*names[:_NAMED], f"{len(names) - _NAMED} others"]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"Not shown to be worse: {listed}."


def guarantee(certificate: Certificate) -> str:
    """The headline of a certificate as a sentence about the measure itself."""
    best = certificate.headline
    if best is None or best.side != "at most" or not best.bounds.startswith("1 - "):
        return certificate.summary()
    measure = best.bounds.removeprefix("1 - ")
    if best.vacuous:
        return f"no bound on {measure}, for which {best.terms['n']:,.0f} queries are too few"
    return f"{measure} is at least {1 - best.value:.3f} on average, with {100 * (1 - certificate.delta):g}% confidence"
