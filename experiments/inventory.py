"""Every numbered statement of the five papers: where it is here and how close, or why there is none.

Those of each paper are in a module of their own. An item that names a module of ``experiments`` has a key that is an
argument of ``python3 run.py python -m experiments.reproduction``: ``smoothrank-figure-3`` runs the experiment of that
figure and writes the page again.
"""

from experiments import inventory_2014, inventory_2015, inventory_direct, inventory_online, inventory_smoothrank
from experiments.inventory_item import Item

VERDICTS = {
    "same": "the same statement, formula or picture",
    "sharper": "true as printed; a smaller constant or a weaker condition is proved here",
    "corrected": "false or incomplete as printed",
    "partly": "some of what is printed is found here",
    "differs": "the data show something else here",
    "not reproduced": "with the reason",
    "open": "an open problem of the paper, open here too",
}

PAPERS = (inventory_smoothrank, inventory_direct, inventory_2014, inventory_online, inventory_2015)
ITEMS: dict[str, Item] = {item.key: item for paper in PAPERS for item in paper.ITEMS}
