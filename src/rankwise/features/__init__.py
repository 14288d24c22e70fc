"""From the columns of a table to features: what is done with each column is learned, reported, applied and saved.

:class:`rankwise.FeatureBuilder` (:mod:`rankwise.features.builder`) is the entry point. A table of any source is a
:class:`rankwise.features.table.RawTable`; :mod:`rankwise.features.columns` decides what is done with a column,
:mod:`rankwise.features.treatments` does it, and :mod:`rankwise.features.codec` writes what was learned as plain
numbers and texts.
"""

from rankwise._lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
