"""What the page about click logs says."""

from collections.abc import Iterator

from experiments.clicks import binomial_limit
from experiments.clicks_runs import CANDIDATES, POOL
from rankwise.clicks.checks import COIN_LEVEL
from tests.prose.claims import claims, stated
from tests.prose.pages import stored


@claims("clicks.md")
def naive_click_rates() -> Iterator[str]:
    errors = stored("clicks")["naive"]
    least, most = -max(errors), -min(errors)
    yield f"In the simulation below it is {100 * least:.0f} to {100 * most:.0f} % too small at positions 2 to 10"


@claims("clicks.md")
def coverage() -> Iterator[str]:
    found = stored("clicks")
    worth = found["setting"]
    better, worse = worth["better"] - worth["logged"], worth["logged"] - worth["worse"]
    met = [case for case in found["coverage"].values() if case["met"] == "yes"]
    assert len(met) == 5
    assert sum(case["logs"] == 1_000 for case in met) == 4
    assert all(case["sessions"] == 1_000 for case in met)
    for case in met:
        limit = binomial_limit(case["logs"], found["delta"])
        assert max(case["missed"].values()) <= limit
        assert case["certified"]["worse"] <= limit
    too_large = found["coverage"]["propensities 30 % too large"]
    assert too_large["missed"]["value"] <= binomial_limit(too_large["logs"], found["delta"])
    yield (
        f"Each row below has independent logs of 1,000 sessions, at delta = {found['delta']:g} and tau = "
        f"{found['tau']:g}; the better ranking is worth {better:.2f} more than the logged one, the worse one "
        f"{worse:.2f} less. While the preconditions are met, no column of misses exceeds delta beyond chance, and the "
        "worse ranking is certified in no more than delta of the logs."
    )
    broken = ("propensities 37 % too small", "trust bias, ignored", "cascade readers")
    for name in broken:
        case = found["coverage"][name]
        assert max(case["missed"].values()) > 0.5 * case["logs"]
    yield (
        "Propensities that are too small, trust bias that is ignored and readers who stop at the first click break the "
        "bound."
    )


@claims("clicks.md")
def power() -> Iterator[str]:
    share = stored("clicks")["power"]["1000 0.1"]["certified"]
    assert share >= 0.9
    yield f"With 1,000 sessions the better ranking is certified in {100 * share:.0f} % of the runs."


@claims("clicks.md")
def exploration() -> Iterator[str]:
    found = stored("clicks")["exploration"]
    assert found["pool"] == 20
    none, some = (found["rows"][f"{share} 50000"]["lower"] for share in ("0", "0.05"))
    assert none < 0.5 * found["gain"] < 0.8 * found["gain"] < some
    yield f"and the new ranking is worth {found['gain']:.2f} more. Without exploration the bound stops far below"


@claims("clicks.md")
def looking() -> Iterator[str]:
    null = stored("clicks")["null"]
    assert null["decided"] <= binomial_limit(null["runs"], null["delta"])
    yield (
        f"Of {null['runs']:,} runs without any preference, looked at after each of {null['impressions']:,} impressions "
        f"at level {100 * null['delta']:g} %, {null['decided']} were decided."
    )


@claims("clicks.md")
def learning() -> Iterator[str]:
    from experiments.clicks import interval

    found = stored("clicks")["learning"]
    many, few = found["20000"], found["2000"]
    ridge, naive = many["values"]["ridge"], many["values"]["naive ridge"]
    assert interval([one - found["logger"] for one in ridge])[1] > 0
    assert interval([one - other for one, other in zip(ridge, naive, strict=True)])[1] > 0
    assert few["certified"] < 0.5 * few["seeds"]
    difference, low, high = interval([one - other for one, other in zip(ridge, naive, strict=True)])
    yield (
        f"From 20,000 sessions the ridge on clicks over propensities beats the logged ranker and the ridge on plain "
        f"clicks, the latter by {difference:.4f} ({low:.4f} to {high:.4f}). The safe mode certifies a gain in "
        f"{few['certified']} of {few['seeds']} runs with 2,000 sessions, and says that it cannot tell in the others; "
        f"with 20,000 sessions it certifies {many['certified']} of {many['seeds']}."
    )


stated(
    "clicks.md",
    "questions and names",
    "without making things worse?",
    "published schema (version 1.3.0)",
)
stated(
    "clicks.md",
    "other people's numbers",
    "with 1.2 billion sessions",
    "SIGIR 2024, arXiv:2404.02543",
    "ULTRE-2, arXiv:2310.11852",
)


@claims("clicks.md")
def beyond_the_pool() -> Iterator[str]:
    found = stored("clicks")["pool"]
    assert len(found) == 3
    for case in found.values():
        assert (case["logs"], case["delta"]) == (1_000, 0.05)
        assert case["missed"] <= binomial_limit(case["logs"], case["delta"])
    yield (
        f"Below, each query has {CANDIDATES} candidates and pages are drawn from a pool of {POOL}; the other ranking "
        "shows the rest, of which no click is ever seen. Bounds at delta = 0.05 over 1,000 logs of 4,000 sessions:"
    )


@claims("clicks.md")
def refuted_share() -> Iterator[str]:
    yield f"one that the assumed `share` gives with probability {COIN_LEVEL:g} at most"
