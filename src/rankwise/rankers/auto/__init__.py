"""A stack of linear rankers and boosted trees."""
