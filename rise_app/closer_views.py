"""The closer looks under an evaluation, the same for a run and for a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

import streamlit as st

from rise_app import detail_views, views
from rise_app.loaders import Question
from rise_app.threshold_views import show_thresholds
from rise_core import Evaluation
from rise_core.charts.theme import ThemeName

__all__ = ["Looks", "show_closer"]

Looks = Mapping[str, Callable[[], None]]
"""Title of a tab to what draws it."""


def show_closer(
    ev: Evaluation,
    question: Question,
    verdict: Future[views.Verdict],
    theme: ThemeName,
    *,
    before: Looks | None = None,
    after: Looks | None = None,
) -> None:
    """Show tabs of closer looks; only the open one is computed, and it stands in the address.

    Parameters
    ----------
    ev, question, verdict : what was evaluated, its name for the caches, its noise
    theme : of the charts
    before, after : tabs of the page's own
    """
    known = verdict.result()[0] if verdict.done() else None
    looks: dict[str, Callable[[], None]] = {
        **(before or {}),
        "Groups": partial(views.show_groups, ev),
        "Segments of the gap": partial(detail_views.show_segments, ev, known, theme),
        "Given the label": partial(detail_views.show_given_label, ev, question, theme),
        "Calibration": partial(detail_views.show_calibration, ev, question, theme),
        "Threshold": partial(show_thresholds, ev, question, theme),
        "Knees": partial(views.show_knees, ev),
        **(after or {}),
    }
    tabs = st.tabs(list(looks), key="tab", bind="query-params")
    for tab, show in zip(tabs, looks.values(), strict=True):
        if tab.open:
            with tab:
                show()
