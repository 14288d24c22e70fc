from typing import Any

from rankwise.measures._base import BinaryMeasure as BinaryMeasure
from rankwise.measures._base import Measure as Measure
from rankwise.measures._base import parse as parse
from rankwise.measures._base import registered as registered
from rankwise.measures.ap import AP as AP
from rankwise.measures.bpref import Bpref as Bpref
from rankwise.measures.err import ERR as ERR
from rankwise.measures.ndcg import DCG as DCG
from rankwise.measures.ndcg import NDCG as NDCG
from rankwise.measures.ndcg import MeanNDCG as MeanNDCG
from rankwise.measures.pairs import Pairs as Pairs
from rankwise.measures.precision import RR as RR
from rankwise.measures.precision import Judged as Judged
from rankwise.measures.precision import P as P
from rankwise.measures.precision import R as R
from rankwise.measures.precision import Rprec as Rprec
from rankwise.measures.precision import Success as Success
from rankwise.measures.rbp import RBP as RBP
from rankwise.measures.wta import WTA as WTA

def __getattr__(name: str) -> Any: ...  # what the registry finds in other packages
