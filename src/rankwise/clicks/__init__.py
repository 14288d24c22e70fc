"""Click logs: read them, value new rankings from them with a bound, learn from them, and decide by interleaving.

:class:`ClickLog` holds sessions; :func:`by_swaps`, :func:`harvest` and :func:`given` make a :class:`Propensities`, the
position model; :func:`value` and :func:`gain` bound what a new ranking is worth from below; :class:`TeamDraft`,
:func:`preference` and :func:`ab_test` compare two rankers live; :func:`safe_ranker` learns near the logged ranker;
:func:`simulate` makes logs of which the truth is known.
"""

from rankwise._registry import lazy_names

_HOMES = {
    "checks": ["click_rates", "inspect"],
    "click_value": ["ClickValue"],
    "learning": ["SafeRanker", "safe_ranker", "training_queries"],
    "log": ["ClickLog"],
    "preferences": [
        "Page",
        "Preference",
        "TeamDraft",
        "ab_test",
        "credits",
        "impressions_needed",
        "preference",
        "team_draft",
    ],
    "propensities": ["Propensities", "by_click_rate", "by_swaps", "given", "harvest"],
    "reading": ["iter_ubi"],
    "simulation": ["attractiveness", "simulate", "true_value"],
    "values": ["gain", "value"],
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
