"""Closer looks on the Diagnose page: segments of the gap, the two labels apart, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from math import isnan

import pandas as pd
import streamlit as st

from rise_app.jobs import Jobs, jobs, rerun_when_done
from rise_app.loaders import Question
from rise_app.panels import show_panels
from rise_core import Evaluation
from rise_core.calibration import Calibration, calibrate
from rise_core.charts import (
    calibration_chart,
    strip_chart,
    strip_domain,
)
from rise_core.charts.theme import ThemeName
from rise_core.conditional import given_labels
from rise_core.estimates import Estimate
from rise_core.uncertainty import Uncertainty

__all__ = ["show_calibration", "show_given_label", "show_segments"]

_PATIENCE_SECONDS = 1.0
_MOST_GROUPS = 8


def show_segments(ev: Evaluation, known: Uncertainty | None, theme: ThemeName) -> None:
    """Show which stretch of the curves carries how much of the gap, tight or not, parallel or not.

    ``known`` is None while intervals are being computed.
    """
    if ev.widest_pair is None:
        st.text(ev.undefined["w1"])
        return
    group, reference = ev.widest_pair
    pictures = {
        "share": "Share of the gap (W1)",
        "mean_gap": f"Mean gap, {group} − {reference} (0: tight)",
        "slope_gap": "Slope gap (0: parallel)",
    }
    for column, (name, title) in zip(st.columns(3), pictures.items(), strict=True):
        with column:
            chart = strip_chart(
                _estimates(ev, known, name),
                fair=None if name == "share" else 0.0,
                domain=(0.0, 1.0) if name == "share" else None,
                number_format=".0%" if name == "share" else "+.3f",
                title=title,
                theme=theme,
                row_height=34,
            )
            st.altair_chart(chart, theme=None, width="stretch", key=f"segments {name}")
    st.dataframe(
        _segment_rows(ev, known),
        hide_index=True,
        alt="Segments of the gap between the curves, with their share, mean gap and slope gap.",
        column_config={
            "share of W1": st.column_config.NumberColumn(format="percent"),
            "from": st.column_config.NumberColumn(
                format="percent", help="Rank at which it begins."
            ),
            "to": st.column_config.NumberColumn(format="percent", help="Rank at which it ends."),
            "area": st.column_config.NumberColumn(
                format="%.4f", help="Area between the curves here; the areas add up to W1."
            ),
            "mean gap": st.column_config.NumberColumn(format="%+.4f"),
            "slope gap": st.column_config.NumberColumn(format="%+.4f"),
        },
    )
    st.caption(
        "Dot: value. Line: 95 % interval. Grey: where 95 % of random groupings fall. Segments are "
        "cut at the knees of all rows."
    )


def _estimates(ev: Evaluation, known: Uncertainty | None, name: str) -> pd.DataFrame:
    if known is None:
        rows = [{"name": s.name, "value": getattr(s, name)} for s in ev.segments]
        return pd.DataFrame(rows)
    return pd.DataFrame(
        [
            {
                "name": e.segment,
                "value": e.value,
                "low": e.low,
                "high": e.high,
                "null_low": e.null_low,
                "null_high": e.null_high,
            }
            for e in known.segments
            if e.name == name
        ]
    )


def _segment_rows(ev: Evaluation, known: Uncertainty | None) -> list[dict[str, object]]:
    found = {(e.segment, e.name): e for e in known.segments} if known is not None else {}
    return [
        {
            "segment": s.name,
            "from": s.q0,
            "to": s.q1,
            "area": s.area,
            "share of W1": s.share,
            "mean gap": s.mean_gap,
            "tight?": _near_zero(found.get((s.name, "mean_gap"))),
            "slope gap": s.slope_gap,
            "parallel?": _near_zero(found.get((s.name, "slope_gap"))),
        }
        for s in ev.segments
    ]


def _near_zero(estimate: Estimate | None) -> str:
    if estimate is None or isnan(estimate.low):
        return "–"
    if estimate.low <= 0 <= estimate.high:
        return "not told from 0"
    return "no"


def show_given_label(ev: Evaluation, question: Question, theme: ThemeName) -> None:
    """Show the curves of the rows with either label apart: what base rates cannot explain."""
    parts = given_labels(ev)
    p = ev.predictions
    names = {1: f"y = {p.pos_label}", 0: f"y = {p.neg_label}"}
    models = {names[label]: part for label, part in parts.items()}
    if not models:
        st.text("There are no rows.")
        return
    futures = {
        name: jobs().ask(("given label", question, name), partial(part.uncertainty, 300, 300))
        for name, part in models.items()
    }
    Jobs.settle(list(futures.values()), _PATIENCE_SECONDS)

    def note(name: str) -> None:
        st.html(_label_note(models[name], futures[name]))

    show_panels(question, models, theme, height=230, wide=True, below=note)
    st.dataframe(
        [
            {
                "rows": name,
                "group": label,
                "n": curve.n,
                "mean score": curve.mean_score,
                "median residual": curve.median_residual,
                "called positive": curve.positive_rate,
            }
            for name, part in models.items()
            for label, curve in part.groups.items()
        ],
        hide_index=True,
        alt="Scores and residuals of every group, given the label.",
        column_config={
            "n": st.column_config.NumberColumn(format="localized"),
            "mean score": st.column_config.NumberColumn(format="%.3f"),
            "median residual": st.column_config.NumberColumn(format="%+.3f"),
            "called positive": st.column_config.NumberColumn(
                format="%.3f",
                help=f"Of rows that are {p.pos_label}: the true positive rate. Of the others: the "
                "false positive rate.",
            ),
        },
    )
    st.caption(
        "With the label held fixed, a difference of base rates parts no curve: what is left is "
        "error."
    )
    unfinished = [future for future in futures.values() if not future.done()]
    if unfinished:
        rerun_when_done(unfinished[0], "Computing intervals …")


def _label_note(ev: Evaluation, future: Future[Uncertainty]) -> str:
    value = ev.indicators.w1
    if isnan(value):
        return '<p class="rise-note">One group only: there is no gap.</p>'
    text = f"W1 {value:.3f}"
    if future.done() and future.exception() is None:
        gap = future.result()["w1"]
        text += f" ({gap.low:.3f} to {gap.high:.3f})"
        if gap.distinguishable is False:
            text += ", not told from random"
    return f'<p class="rise-note">{text}</p>'


def show_calibration(ev: Evaluation, question: Question, theme: ThemeName) -> None:
    """Show whether scores are frequencies, group by group."""
    found = _calibration(question, ev)
    labels = list(ev.groups)
    left, right = st.columns([1.1, 1], gap="large")
    with left:
        chart = calibration_chart(
            found, labels[:_MOST_GROUPS], ev.predictions.pos_label, theme=theme
        )
        st.altair_chart(chart, theme=None, width="stretch", key="calibration")
        if len(labels) > _MOST_GROUPS:
            st.caption(f"The first {_MOST_GROUPS} of {len(labels)} groups are drawn.")
    with right:
        chart = strip_chart(
            pd.DataFrame(_ece_rows(found)), title="ECE, calibration error", theme=theme
        )
        st.altair_chart(chart, theme=None, width="stretch", key="ece")
        bias = pd.DataFrame(_bias_rows(found))
        low, high = strip_domain(bias)
        chart = strip_chart(
            bias,
            fair=0.0,
            domain=(min(low, 0.0), max(high, 0.0)),
            number_format="+.3f",
            title="Mean score minus share of positives",
            theme=theme,
        )
        st.altair_chart(chart, theme=None, width="stretch", key="bias")
        st.caption(
            "Line: 95 % interval. Grey: what a calibrated model with these scores stays within in "
            "95 % of draws. Bins hold equal counts of a group's rows."
        )
    weighted = " Every group is weighted to the same base rate." if ev.base_rates == "equal" else ""
    st.caption(f"Calibration depends on neither threshold nor residual.{weighted}")
    with st.expander("Bins"):
        st.dataframe(found.table, hide_index=True, alt="Calibration of every group, bin by bin.")


def _ece_rows(found: Calibration) -> list[Mapping[str, object]]:
    return [
        {
            "name": name,
            "value": group.ece,
            "low": group.low,
            "high": group.high,
            "null_low": 0.0,
            "null_high": group.chance,
        }
        for name, group in found.groups.items()
    ]


def _bias_rows(found: Calibration) -> list[Mapping[str, object]]:
    return [
        {"name": name, "value": g.bias, "low": g.bias_low, "high": g.bias_high}
        for name, g in found.groups.items()
    ]


@st.cache_resource(max_entries=32, show_spinner=False, hash_funcs={Question: repr})
def _calibration(question: Question, _ev: Evaluation) -> Calibration:
    return calibrate(_ev)
