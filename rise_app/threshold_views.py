"""The threshold on the Diagnose page: decisions at every other one, and a mark to drag."""

from __future__ import annotations

from functools import partial
from math import isnan

import pandas as pd
import streamlit as st

from rise_app.address import remember
from rise_app.loaders import Question
from rise_app.switches import THRESHOLD
from rise_core import Evaluation
from rise_core.charts import threshold_charts
from rise_core.charts.theme import ThemeName
from rise_core.charts.threshold import CLICK
from rise_core.thresholds import threshold_sweep
from rise_core.wording import METRICS, format_number

__all__ = ["show_thresholds"]

# Which indicators change with the threshold, by residual.
_DECISIONS = ("accuracy", "dp", "md_decision")
_RESIDUALS = ("f_mean", "f_shift", "f_acc", "w1")


def show_thresholds(ev: Evaluation, question: Question, theme: ThemeName) -> None:
    """Show accuracy and gaps over all thresholds; the mark on a chart sets the current one."""
    sweep = _sweep(question, ev)
    charts = threshold_charts(sweep, ev.threshold, baseline=ev.majority_accuracy, theme=theme)
    for column, (title, chart) in zip(st.columns(len(charts)), charts.items(), strict=True):
        with column:
            # A key for every threshold: the same place is chosen anew after the slider was moved.
            key = f"threshold {title} {ev.threshold:g}"
            st.altair_chart(
                chart,
                theme=None,
                width="stretch",
                key=key,
                on_select=partial(_take, key),
                selection_mode=[CLICK],
            )
    st.caption("Drag the mark, click on a chart, or move the slider at the side.")
    st.dataframe(_now(ev, sweep), hide_index=True, alt="Rates of every group at this threshold.")
    st.text(_what_moves(ev))


def _take(key: str) -> None:
    """Set the threshold where the mark was let go."""
    points = st.session_state[key].selection.get(CLICK)
    if points:
        remember(
            "threshold", f"{round(float(points[0]['threshold']), 4):g}", default=f"{THRESHOLD:g}"
        )


def _now(ev: Evaluation, sweep: pd.DataFrame) -> list[dict[str, object]]:
    row = sweep.iloc[(sweep["threshold"] - ev.threshold).abs().argmin()]
    return [
        {
            "group": label,
            "positive rate": _number(row[f"positive_{place}"]),
            "true positive rate": _number(row[f"tpr_{place}"]),
            "false positive rate": _number(row[f"fpr_{place}"]),
        }
        for place, label in enumerate(ev.groups)
    ]


def _number(value: float) -> str:
    return "–" if isnan(value) else format_number(value)


def _what_moves(ev: Evaluation) -> str:
    fixed = ["MD"]
    if ev.residual == "signed_error":
        fixed += [METRICS[key].name for key in _RESIDUALS]
        return (
            f"{', '.join(fixed[:-1])} and {fixed[-1]} do not depend on the threshold: they compare "
            "scores and errors, not decisions."
        )
    return (
        "MD does not depend on the threshold. F_mean, F_shift, F_acc and W1 do, with the residual "
        "ŷ − p: they are those of the current threshold on this page."
    )


@st.cache_resource(max_entries=32, show_spinner=False, hash_funcs={Question: repr})
def _sweep(question: Question, _ev: Evaluation) -> pd.DataFrame:
    return threshold_sweep(_ev)
