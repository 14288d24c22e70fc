"""Write one model file of every ranker in the current format, and the scores that it gives.

Run by ``python -m tests.rankers.make_fixtures`` for a new ranker, and when the format changes: files that are there
stay as they are, and are read for ever.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.base import clone

from rankwise._store import FORMAT
from rankwise.losses.given_relevance import GivenSoftmax
from rankwise.queries.queries import Queries
from rankwise.rankers._base import registered
from rankwise.rankers.online.online_ranker import OnlineRanker

FOLDER = Path(__file__).parent / "fixtures"
# other states of a ranker
OTHERS = {"OnlineRanker_feedback": OnlineRanker(GivenSoftmax(), feedback_depth=2, explore=0.5)}


def rows(count: int = 12, features: int = 3) -> np.ndarray:
    """Features that no generator of random numbers has a say in."""
    place = np.arange(count * features).reshape(count, features)
    return ((place * 7 + place // features * 5) % 23 - 11) / 8.0


def judged() -> Queries:
    X = rows(30)
    labels = np.clip(np.rint(X @ [1.0, 0.5, -1.0] + 1), 0, 3)
    return Queries.from_arrays(X, labels, group=[5, 4, 6, 1, 7, 7], feature_names=["bm25", "age", "clicks"])


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    told = FOLDER / f"format_{FORMAT}_scores.json"
    scores = json.loads(told.read_text()) if told.exists() else {}
    examples = {name: kind.examples()[0] for name, kind in registered().items()} | OTHERS
    for name, example in examples.items():
        path = FOLDER / f"format_{FORMAT}_{name}.rankwise"
        if not path.exists():  # what was written once has to be read as it is
            model = clone(example).fit(judged())
            model.save(path)
            scores[name] = model.predict(Queries.from_arrays(rows(), group=[len(rows())])).tolist()
    told.write_text(json.dumps(scores, indent=1) + "\n")


if __name__ == "__main__":
    main()
