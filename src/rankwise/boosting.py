"""Objectives and metrics of this package for training LightGBM, XGBoost and CatBoost."""

from rankwise.rankers.boosting.objectives import eval_metric, objective

__all__ = ["eval_metric", "objective"]
