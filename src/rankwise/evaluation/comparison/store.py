"""The folder of finished cells, from which a stopped comparison resumes.

A cell is two files named by its key: the fitted ranker, where it can be saved, and then the cell itself, both written
atomically. A cell is finished when its own file is there; a damaged file counts as none.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._files import path_of, refusing, remove_parts
from rankwise._store import StoreWriter, digest_bytes, open_store
from rankwise.errors import FileFormatError, RankwiseError
from rankwise.evaluation.comparison.cells import Cell
from rankwise.evaluation.comparison.foreign import KIND as TREES
from rankwise.evaluation.comparison.foreign import LambdaRank, read_trees, save_trees
from rankwise.queries.folds import Fold
from rankwise.rankers._base import Ranker
from rankwise.rankers._record import read_ranker

KIND = "comparison cell"
_LAYOUT = 2  # 2: scores of the validation part


def is_kept(model: Any) -> bool:
    """Whether a fitted model goes into the folder: rankers of this package and LightGBM's trees do, others leave only
    scores.
    """
    return isinstance(model, (Ranker, LambdaRank))


class Cells:
    """The finished cells in a folder.

    Parameters
    ----------
    folder : str or path-like
        The folder, made where it does not exist; any number of comparisons may share it.

    Attributes
    ----------
    folder : Path
        The folder.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(path_of(folder))
        if self.folder.exists() and not self.folder.is_dir():
            raise RankwiseError(f"resume must be a folder, got the file {folder}")
        if not self.folder.parent.is_dir():
            raise RankwiseError(f"{folder} cannot be created: the folder {self.folder.parent} does not exist")
        with refusing(folder):
            self.folder.mkdir(exist_ok=True)
        remove_parts(self.folder, ending=".rankwise")  # of a run that was killed

    def read(self, key: str, name: str, fold: int, part: Fold) -> Cell | None:
        """Read the finished cell of a key.

        Parameters
        ----------
        key : str
            The key.
        name : str
            The name of the ranker in this comparison.
        fold : int
            The fold in this comparison.
        part : Fold
            The data of the fold.

        Returns
        -------
        Cell or None
            The cell; None where there is none, or where it is damaged, which prints a line on standard error.
        """
        path = self._cell(key)
        if not path.exists():
            return None
        try:
            return self._read(key, name, fold, part)
        except Exception as error:  # whatever a damaged file provokes
            about = (str(error).splitlines() or [type(error).__name__])[0]
            print(f"rankwise: {name} on fold {fold} is computed again: {about}", file=sys.stderr)
            return None

    def write(self, key: str, cell: Cell) -> None:
        """Keep a finished cell; the ranker is written first, so a cell always finds its ranker."""
        # models of other packages are not saved: pickles could run code when they are opened
        saved = is_kept(cell.model) and self._save(cell.model, self._model(key))
        line = {"model": digest_bytes(self._model(key).read_bytes()) if saved else None, **cell.line()}
        with StoreWriter(self._cell(key), KIND) as file:
            check = _check(line, cell.scores, cell.validation_scores)
            file.metadata.update({"layout": _LAYOUT, "key": key, "line": line, "check": check})
            file.append("scores", cell.scores)
            if cell.validation_scores is not None:
                file.append("validation_scores", cell.validation_scores)

    def _read(self, key: str, name: str, fold: int, part: Fold) -> Cell:
        """Read and check a cell and its ranker."""
        store = open_store(self._cell(key))
        if store.kind != KIND or store.fact("layout", int) != _LAYOUT or store.fact("key", str) != key:
            raise FileFormatError(f"{store.path} is not the cell of this key")
        line, scores = store.fact("line", dict), store.array("scores", np.float64, (part.test.n_documents,))
        validated = None
        if part.validation is not None:
            validated = store.array("validation_scores", np.float64, (part.validation.n_documents,))
        if store.fact("check", str) != _check(line, scores, validated):
            raise FileFormatError(f"{store.path} is damaged: its numbers are not those that were written")
        # a cell whose ranker was changed or lost is computed again
        digest = line.pop("model")
        if digest is not None and digest_bytes(self._model(key).read_bytes()) != digest:
            raise FileFormatError(f"{self._model(key)} is damaged: it is not the ranker that was written")
        model = None if digest is None else self._open(self._model(key))
        own = {**line, "ranker": name, "fold": fold}
        return Cell(scores=scores, model=model, validation_scores=validated, **own)

    @staticmethod
    def _save(model: Any, path: Path) -> bool:
        """Save a ranker; False where a parameter is something that no file can hold."""
        try:
            if isinstance(model, LambdaRank):
                save_trees(model, path)
            else:
                model.save(path)
        except RankwiseError:
            return False
        return True

    @staticmethod
    def _open(path: Path) -> Any:
        """Read a ranker."""
        store = open_store(path)
        return read_trees(store) if store.kind == TREES else read_ranker(store)

    def _cell(self, key: str) -> Path:
        """The file of a cell."""
        return self.folder / f"{key}.cell.rankwise"

    def _model(self, key: str) -> Path:
        """The file of the ranker of a cell."""
        return self.folder / f"{key}.model.rankwise"


def _check(line: dict[str, Any], *scores: NDArray[np.float64] | None) -> str:
    """The digest of everything in a cell, which detects a flipped bit."""
    known = (b"" if one is None else np.ascontiguousarray(one).tobytes() for one in scores)
    return digest_bytes(json.dumps(line, sort_keys=True).encode(), *known)
