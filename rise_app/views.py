"""Parts of the Diagnose page: header, curve, indicators, tables."""

from __future__ import annotations

import streamlit as st

from rise_app.address import linked
from rise_app.cards import card_rows, cards_html, facts_html, title_html
from rise_app.loaders import ALL_ROWS
from rise_core import Evaluation
from rise_core.charts import rise_chart
from rise_core.charts.theme import ThemeName
from rise_core.predictions import CORRECTNESS, ENVIRONMENT
from rise_core.residuals import RESIDUALS
from rise_core.tracking import Run

__all__ = ["show_curve", "show_evaluation", "show_indicators", "show_run", "show_tables"]

_VIEWS = {"groups": "Group curves", "global": "Global curve"}
_MOST_PIECES = 200


def _name(run: Run) -> str:
    parts = [str(run.algorithm)]
    if run.dataset:
        parts.append(f"on {run.dataset}")
    return " ".join(parts)


def show_run(run: Run) -> None:
    """Head the page with the run's name alone."""
    st.html(title_html(_name(run)) + facts_html({"run": run.name, "id": run.id[:8]}))


def show_evaluation(run: Run, ev: Evaluation, environment: str) -> None:
    """Head the page with what was evaluated: rows, classes, groups, settings."""
    where = "all environments" if environment == ALL_ROWS else environment
    if ev.predictions.environment is None:
        where = ""
    left_out = "none"
    if ev.left_out:
        left_out = "; ".join(f"{count:,} ({reason})" for reason, count in ev.left_out.items())
    facts = {
        "rows used": f"{ev.n:,} of {ev.n_rows:,}",
        "left out": left_out,
        "positive class": ev.predictions.pos_label,
        "groups": _groups(ev),
        "base rates": ", ".join(f"{c.base_rate:.2f} {name}" for name, c in ev.groups.items())
        + (" (weighted to be equal)" if ev.base_rates == "equal" else ""),
        "threshold": f"{ev.threshold:g}",
        "residual": RESIDUALS[ev.residual].symbol,
        "run": f"{run.name} ({run.id[:8]})" + (", still running" if run.running else ""),
    }
    st.html(title_html(_name(run), where) + facts_html(facts))


def _groups(ev: Evaluation) -> str:
    counted = {label: f"{label} (n = {curve.n:,})" for label, curve in ev.groups.items()}
    if ev.sensitive is not None and len(counted) == 2:
        how = "" if ev.sensitive_chosen == "named" else f"; {ev.sensitive_chosen} is sensitive"
        return f"{counted[ev.sensitive]} against {counted[str(ev.reference)]}{how}"
    return ", ".join(counted.values())


def show_curve(ev: Evaluation, theme: ThemeName) -> None:
    """Show the RISE chart with its own switches."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        view = linked(
            st.segmented_control,
            "View",
            list(_VIEWS),
            "view",
            default="groups",
            format_func=_VIEWS.__getitem__,
            label_visibility="collapsed",
        )
        colour = linked(
            st.selectbox,
            "Colour by",
            _colourings(ev),
            "colour",
            default=ev.feature,
            width=230,
            format_func=lambda name: f"colour by {name}",
            label_visibility="collapsed",
        )
    pieces = 40
    place = st.empty()
    if view == "global":
        pieces = st.slider(
            "Most pieces of the curve",
            3,
            _MOST_PIECES,
            pieces,
            key="pieces",
            persist_state="session",
            help="The curve is cut where the mix of groups changes, as long as the change is more "
            "than chance; this is the most pieces it may have.",
        )
    chart = rise_chart(
        ev,
        view=view,  # type: ignore[arg-type]
        color_by=None if colour == ev.feature else colour,
        segments=pieces,
        theme=theme,
    )
    place.altair_chart(chart, theme=None, width="stretch", key=f"chart {view}")
    if colour != ev.feature:
        st.caption(
            f"Coloured by {colour}. The indicators still compare the groups of {ev.feature}."
        )


def _colourings(ev: Evaluation) -> list[str]:
    names = [ev.feature, *(name for name in ev.predictions.features if name != ev.feature)]
    if ev.predictions.environment is not None and len(ev.predictions.environment.labels) > 1:
        names.append(ENVIRONMENT)
    return [*names, CORRECTNESS]


def show_indicators(ev: Evaluation, theme: ThemeName) -> None:
    """Show the indicators as a list."""
    st.html(cards_html(card_rows(ev), theme))
    st.html(
        f'<p class="rise-note">Always deciding for the more frequent label would have an accuracy '
        f"of {ev.majority_accuracy:.3f}.</p>"
    )


def show_tables(ev: Evaluation) -> None:
    """Show the numbers behind the picture, as tables that can be saved."""
    groups, segments, knees = st.tabs(["Groups", "Segments of the gap", "Knees"])
    with groups:
        st.dataframe(ev.group_table(), hide_index=True)
    with segments:
        st.dataframe(
            [
                {
                    "segment": s.name,
                    "from": s.q0,
                    "to": s.q1,
                    "share of W1": s.share,
                    "mean gap": s.mean_gap,
                    "slope gap": s.slope_gap,
                }
                for s in ev.segments
            ],
            hide_index=True,
        )
        if ev.widest_pair:
            st.text(f"Gaps are {ev.widest_pair[0]} minus {ev.widest_pair[1]}.")
    with knees:
        st.dataframe(ev.displacements, hide_index=True)
