"""Tables and figures of the papers, one command each: ``python3 run.py python -m experiments.reproduction [KEY ...]``.

Without a key it writes the tables of docs/reproduction.md from the numbers that the experiments have left in
docs/*.json. With keys, such as ``smoothrank-figure-3`` or ``direct-table-2``, it first runs the experiments that make
these; the keys stand in the inventory of the page. Data come from the folder that RANKWISE_DATA names.
"""

import subprocess
import sys
from collections.abc import Sequence

from experiments.inventory import ITEMS
from experiments.pages import DOCS, write_block
from experiments.reproduction_tables import BLOCKS

PAGE = DOCS / "reproduction.md"


def main(keys: Sequence[str]) -> int:
    known = [key for key, item in ITEMS.items() if item.module]
    unknown = [key for key in keys if key not in known]
    if unknown:
        why = f" ({ITEMS[unknown[0]].reason})" if unknown[0] in ITEMS else ""
        print(f"nothing makes {unknown[0]}{why}: the keys are {', '.join(known)}", file=sys.stderr)
        return 2
    for module in dict.fromkeys(ITEMS[key].module for key in keys):
        done = subprocess.run([sys.executable, "-m", *f"experiments.{module}".split()], check=False)
        if done.returncode:
            return done.returncode
    for name, block in BLOCKS.items():
        write_block(PAGE, name, block())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
