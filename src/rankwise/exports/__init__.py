"""From a ranker to a search engine, and back: exports with a proof, and other tools' models read as rankers."""

from rankwise.exports._base import Export, Target, targets
from rankwise.exports.imports import read_model
from rankwise.exports.parity import Parity
from rankwise.exports.write import export

__all__ = ["Export", "Parity", "Target", "export", "read_model", "targets"]
