from rankwise.clicks.checks import click_rates as click_rates
from rankwise.clicks.checks import inspect as inspect
from rankwise.clicks.click_value import ClickValue as ClickValue
from rankwise.clicks.learning import SafeRanker as SafeRanker
from rankwise.clicks.learning import safe_ranker as safe_ranker
from rankwise.clicks.learning import training_queries as training_queries
from rankwise.clicks.log import ClickLog as ClickLog
from rankwise.clicks.preferences import Page as Page
from rankwise.clicks.preferences import Preference as Preference
from rankwise.clicks.preferences import TeamDraft as TeamDraft
from rankwise.clicks.preferences import ab_test as ab_test
from rankwise.clicks.preferences import credits as credits
from rankwise.clicks.preferences import impressions_needed as impressions_needed
from rankwise.clicks.preferences import preference as preference
from rankwise.clicks.preferences import team_draft as team_draft
from rankwise.clicks.propensities import Propensities as Propensities
from rankwise.clicks.propensities import by_click_rate as by_click_rate
from rankwise.clicks.propensities import by_swaps as by_swaps
from rankwise.clicks.propensities import given as given
from rankwise.clicks.propensities import harvest as harvest
from rankwise.clicks.reading import iter_ubi as iter_ubi
from rankwise.clicks.simulation import attractiveness as attractiveness
from rankwise.clicks.simulation import simulate as simulate
from rankwise.clicks.simulation import true_value as true_value
from rankwise.clicks.values import gain as gain
from rankwise.clicks.values import value as value

__all__: list[str]
