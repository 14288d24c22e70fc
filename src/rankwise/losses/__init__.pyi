from typing import Any

from rankwise.losses._base import Loss as Loss
from rankwise.losses._base import SmoothedMeasure as SmoothedMeasure
from rankwise.losses._base import registered as registered
from rankwise.losses._pairs import pair_loss as pair_loss
from rankwise.losses.given_relevance import GivenSoftmax as GivenSoftmax
from rankwise.losses.given_relevance import PropensityHinge as PropensityHinge
from rankwise.losses.graded_pair_hinge import GradedPairHinge as GradedPairHinge
from rankwise.losses.graded_pairs import GradedPairs as GradedPairs
from rankwise.losses.listmle import ListMLE as ListMLE
from rankwise.losses.listnet import ListNet as ListNet
from rankwise.losses.listnet_top import ListNetTopK as ListNetTopK
from rankwise.losses.max_pair import MaxPair as MaxPair
from rankwise.losses.pair_logistic import PairLogistic as PairLogistic
from rankwise.losses.pairwise_hinge import PairHinge as PairHinge
from rankwise.losses.permutation import TypeOne as TypeOne
from rankwise.losses.permutation import TypeTwo as TypeTwo
from rankwise.losses.permutation import best_imperfect as best_imperfect
from rankwise.losses.permutation import permutation_score as permutation_score
from rankwise.losses.permutation import worst_perfect as worst_perfect
from rankwise.losses.rank_cosine import RankCosine as RankCosine
from rankwise.losses.slam import SLAM as SLAM
from rankwise.losses.smooth_ap import SmoothAP as SmoothAP
from rankwise.losses.smooth_ndcg import SmoothDCG1 as SmoothDCG1
from rankwise.losses.smooth_ndcg import SmoothNDCG as SmoothNDCG
from rankwise.losses.smooth_ndcg import SmoothPrecision as SmoothPrecision
from rankwise.losses.smooth_ndcg import SmoothRR as SmoothRR
from rankwise.losses.soft_rank import SoftRank as SoftRank
from rankwise.losses.soft_rank import SoftRankNDCG as SoftRankNDCG
from rankwise.losses.stochastic_ndcg import StochasticNDCG as StochasticNDCG
from rankwise.losses.structured import SVMMapHinge as SVMMapHinge
from rankwise.losses.structured_ndcg import NDCGHinge as NDCGHinge
from rankwise.losses.type_two import TypeTwoBound as TypeTwoBound

def __getattr__(name: str) -> Any: ...  # what the registry finds in other packages
