"""The choice between linear rankers and boosted trees."""
