"""RISE: see where, and for whom, a classifier errs.

`evaluate` reads one model's predictions; the numbers need numpy and pandas alone. Charts, MLflow
and the report live in subpackages that are imported by name.
"""

from __future__ import annotations

from rise_core.comparison import Comparison, compare
from rise_core.evaluation import Evaluation, Settings, evaluate, evaluate_predictions
from rise_core.exceptions import ColumnError, PredictionsError, RiseError
from rise_core.predictions import Factor, Predictions

__all__ = [
    "ColumnError",
    "Comparison",
    "Evaluation",
    "Factor",
    "Predictions",
    "PredictionsError",
    "RiseError",
    "Settings",
    "compare",
    "evaluate",
    "evaluate_predictions",
]
__version__ = "0.1.0"
