"""How large the sets are: ``python3 run.py python -m experiments.set_facts``.

The OHSUMED row of Table 1 of the paper on SmoothRank, and MQ2008 beside it: queries, relevance levels, features,
documents a query and the share of documents with a label above 0, over the test parts of the five official folds, which
hold every query once. Reads the folder that RANKWISE_DATA names; writes docs/set_facts.json.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import rankwise as rw
from experiments.pages import DOCS
from rankwise._files import writing

NUMBERS = DOCS / "set_facts.json"
SETS = ("ohsumed", "mq2008")


def facts(folder: Path) -> dict[str, Any]:
    """What the paper's table has of one set."""
    queries = rw.Queries.concat([fold.test for fold in rw.io.read_folds(folder)])
    labels = queries.labels()
    return {
        "queries": len(queries),
        "levels": len(np.unique(labels)),
        "features": queries.n_features,
        "documents": queries.n_documents / len(queries),
        "relevant": 100 * float(np.mean(labels > 0)),
    }


def main() -> int:
    data = os.environ.get("RANKWISE_DATA")
    if not data:
        print(f"set RANKWISE_DATA to the folder with the sets {' and '.join(SETS)}", file=sys.stderr)
        return 2
    with writing(NUMBERS) as part:
        part.write_text(
            json.dumps({name: facts(Path(data) / name) for name in SETS}, indent=1) + "\n", encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
