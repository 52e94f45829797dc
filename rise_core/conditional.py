"""The rows of each label by themselves: with the label held fixed, base rates part no curve."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rise_core.evaluation import evaluate_predictions

if TYPE_CHECKING:
    from rise_core.evaluation import Evaluation

__all__ = ["given_labels"]


def given_labels(ev: Evaluation) -> dict[int, Evaluation]:
    """Evaluate the positive and the negative rows apart.

    Parameters
    ----------
    ev : the evaluation; its threshold, residual and detector are kept

    Returns
    -------
    1 and 0, each to the evaluation of the rows with that label; a label without rows is left out

    Notes
    -----
    Base rates are *as observed* in either part: each holds one label only, and weighting to equal
    base rates is a constant within a group and a label, which changes no group's curve.
    """
    settings = replace(ev.settings, base_rates="observed")
    found = {}
    for label in (1, 0):
        mask = ev.predictions.y_true == label
        if mask.any():
            rows = ev.predictions.subset(mask, "the other label")
            sensitive = ev.sensitive if ev.sensitive in rows.feature(ev.feature).labels else None
            found[label] = evaluate_predictions(
                rows, feature=ev.feature, sensitive=sensitive, settings=settings
            )
    return found
