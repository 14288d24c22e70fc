"""The table of real engines on docs/production.md; ``python3 run.py engines --write`` measures it."""

from typing import Any

from experiments.pages import DOCS, markdown_table

PAGE, RESULTS = DOCS / "production.md", DOCS / "engines.json"


def table(rows: list[dict[str, Any]]) -> str:
    """One row for each engine."""
    cells = [
        [
            row["engine"],
            row["version"],
            row["proved"],
            str(row["models"]),
            f"{row['pairs']:,}",
            f"{row['inverted']} ({row['beyond_float32']})",
            *(f"{row[name]:.0e}" if row[name] else "0" for name in ("difference", "unlike_check")),
        ]
        for row in rows
    ]
    titles = ["engine", "version", "what was shown", "models", "pairs", "inverted (beyond float32)"]
    return markdown_table([*titles, "largest difference", "from the check"], cells)
