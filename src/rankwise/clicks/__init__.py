"""Click logs: read them, value new rankings from them with a bound, learn from them, and decide by interleaving.

:class:`ClickLog` holds sessions; :func:`by_swaps`, :func:`harvest` and :func:`given` make a :class:`Propensities`, the
position model; :func:`value` and :func:`gain` bound what a new ranking is worth from below; :class:`TeamDraft`,
:func:`preference` and :func:`ab_test` compare two rankers live; :func:`safe_ranker` learns near the logged ranker;
:func:`simulate` makes logs of which the truth is known.
"""

from rankwise._lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
