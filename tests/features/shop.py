"""A table as a shop has it: texts, dates, gaps, two currencies, ids, a constant."""

import numpy as np
import pandas as pd

ROLES = {"qid": "search", "label": "grade", "docid": "sku"}


def shop(n_queries=40, per_query=8, seed=0):
    """The table as pandas."""
    rng = np.random.default_rng(seed)
    n = n_queries * per_query
    search = np.repeat(np.arange(n_queries), per_query)
    price = rng.uniform(1, 99, n).round(2)
    views = np.exp(rng.normal(3, 2, n)).round(3)
    brand = rng.choice(["acme", "zeta", "omni", "solo"], n, p=[0.5, 0.3, 0.196, 0.004])
    days = rng.integers(0, 400, n)
    score = 0.03 * price + np.log(views) + (brand == "acme") + rng.normal(0, 1, n)
    frame = pd.DataFrame(
        {
            "search": search,
            "query": [f"words {number}" for number in search],
            "sku": [f"S{number:05d}" for number in range(n)],
            "grade": np.digitize(score, np.quantile(score, [0.5, 0.8])),
            "price": [f"{p:.2f} EUR".replace(".", ",") if i % 3 else f"$ {p:.2f}" for i, p in enumerate(price)],
            "views": views,
            "stock": rng.choice(["yes", "no"], n),
            "sold": rng.integers(0, 2, n).astype(bool),
            "brand": brand,
            "added": pd.Timestamp("2024-01-01") + pd.to_timedelta(days, unit="D"),
            "rating": np.where(rng.random(n) < 0.2, np.nan, rng.uniform(1, 5, n).round(2)),
            "size": rng.integers(1, 30, n),
            "title": [f"title {number} {rng.integers(9)}" for number in range(n)],
            "words": [f"word{rng.integers(90)}" for _ in range(n)],
            "one": 1,
        }
    )
    frame.loc[frame.index < 2, "brand"] = "solo"
    frame.loc[frame.index % 17 == 3, "brand"] = None
    frame.loc[frame.index % 19 == 4, "added"] = pd.NaT
    return frame


KINDS = {
    "query": "identifier",
    "price": "amount",
    "views": "number",
    "stock": "boolean",
    "sold": "boolean",
    "brand": "category",
    "added": "date",
    "rating": "number",
    "size": "number",
    "title": "identifier",
    "words": "text",
    "one": "constant",
}
