from rankwise.exports._base import Export as Export
from rankwise.exports._base import Target as Target
from rankwise.exports._base import targets as targets
from rankwise.exports.imports import read_model as read_model
from rankwise.exports.parity import Parity as Parity
from rankwise.exports.write import export as export
