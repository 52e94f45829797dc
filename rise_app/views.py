"""Parts of the Diagnose page: header, curve, indicators, tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

import streamlit as st

from rise_app.address import linked, linked_many, linked_number
from rise_app.band_views import Source, show_chart_with_band
from rise_app.cards import (
    card_rows,
    cards_html,
    facts_html,
    legend_html,
    reading_html,
    section_html,
    title_html,
)
from rise_app.jobs import Jobs, jobs, rerun_when_done
from rise_app.loaders import ALL_ROWS, Question
from rise_app.messages import as_text, problem_of
from rise_core import Evaluation
from rise_core.charts import rise_chart
from rise_core.charts.tables import View
from rise_core.charts.theme import ThemeName
from rise_core.exceptions import RiseError
from rise_core.predictions import CORRECTNESS, ENVIRONMENT
from rise_core.reading import Sentence, read
from rise_core.residuals import RESIDUALS
from rise_core.tracking import Experiment, Run
from rise_core.uncertainty import Uncertainty, not_resampled

__all__ = [
    "ask_verdict",
    "show_about",
    "show_curve",
    "show_evaluation",
    "show_groups",
    "show_header",
    "show_indicators",
    "show_knees",
    "show_reading",
    "show_run",
    "title_of",
]

Verdict = tuple[Uncertainty, tuple[Sentence, ...]]

_VIEWS = {"groups": "Group curves", "global": "Global curve"}
# Most intervals are there by then, and the list is drawn once.
_PATIENCE_SECONDS = 0.4
_PIECES, _MOST_PIECES = 40, 200
_LAYERS = {
    "knees": "◆ ★ knees",
    "medians": "medians",
    "boxes": "shift boxes",
    "segments": "segments",
}


def _name(run: Run) -> str:
    parts = [str(run.algorithm)]
    if run.dataset:
        parts.append(f"on {run.dataset}")
    return " ".join(parts)


def title_of(run: Run, environment: str) -> str:
    """Return what an evaluation is called in a file: algorithm, data set, seed, environment."""
    seed = "" if run.seed is None else f", seed {run.seed}"
    place = "" if environment == ALL_ROWS else f", {environment}"
    return f"{_name(run)}{seed}{place}"


def show_run(run: Run) -> None:
    """Head the page with the run's name alone."""
    st.html(title_html(_name(run)) + facts_html({"run": run.name, "id": run.id[:8]}))


def show_evaluation(run: Run, ev: Evaluation, environment: str) -> None:
    """Head the page with what was evaluated: rows, classes, groups, settings, run."""
    name = f"{run.name} ({run.id[:8]})" + (", still running" if run.running else "")
    show_header(_name(run), ev, environment, {"run": name})


def show_header(title: str, ev: Evaluation, environment: str, source: Mapping[str, str]) -> None:
    """Head a page with what was evaluated; ``source`` says where it is from."""
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
    }
    st.html(title_html(title, where) + facts_html({**facts, **source}))


def _groups(ev: Evaluation) -> str:
    counted = {label: f"{label} (n = {curve.n:,})" for label, curve in ev.groups.items()}
    if ev.sensitive is not None and len(counted) == 2:
        how = "" if ev.sensitive_chosen == "named" else f"; {ev.sensitive_chosen} is sensitive"
        return f"{counted[ev.sensitive]} against {counted[str(ev.reference)]}{how}"
    return ", ".join(counted.values())


def show_curve(
    ev: Evaluation, theme: ThemeName, source: Source | None = None
) -> Callable[..., Any]:
    """Show the RISE chart with its own switches; return what draws it, to be saved as well.

    ``source`` is the table of the rows; with it bands can be looked into.
    """
    with st.container(horizontal=True, vertical_alignment="center"):
        view: View = linked(  # type: ignore[assignment]
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
        layers = _choose_layers(view)
        pieces = _choose_pieces() if view == "global" else _PIECES
    draw = partial(
        rise_chart,
        ev,
        view=view,
        color_by=None if colour == ev.feature else colour,
        segments=pieces,
        show_segments="segments" in layers,
        show_knees="knees" in layers,
        show_rulers="medians" in layers,
        show_boxes="boxes" in layers,
        theme=theme,
        selection=None,
    )
    if source is None:
        st.altair_chart(draw(), theme=None, width="stretch", key=f"chart {view}")
    else:
        show_chart_with_band(draw, ev, view, source, theme)
    if colour != ev.feature:
        by, own = as_text(colour), as_text(ev.feature)
        st.caption(f"Coloured by {by}. The indicators compare the groups of {own}.")
    return draw


def _choose_layers(view: View) -> list[str]:
    """Choose what is drawn on the curves; the boxes start switched off where they would crowd."""
    usual = [name for name in _LAYERS if name != "boxes" or view == "global"]
    with st.popover("Layers", icon=":material/layers:"):
        return linked_many(
            st.pills,
            "Layers",
            list(_LAYERS),
            "layers",
            default=usual,
            selection_mode="multi",
            format_func=_LAYERS.__getitem__,
            label_visibility="collapsed",
        )


def _choose_pieces() -> int:
    return linked_number(
        "Most pieces of the curve",
        3,
        _MOST_PIECES,
        "pieces",
        default=_PIECES,
        step=1,
        width=220,
        help="The curve is cut where the mix of groups changes, as long as the change is more "
        "than chance; this is the most pieces it may have.",
    )


def _colourings(ev: Evaluation) -> list[str]:
    names = [ev.feature, *(name for name in ev.predictions.features if name != ev.feature)]
    if ev.predictions.environment is not None and len(ev.predictions.environment.labels) > 1:
        names.append(ENVIRONMENT)
    return [*names, CORRECTNESS]


def ask_verdict(ev: Evaluation, question: Question) -> Future[Verdict]:
    """Begin to compute what the numbers' noise is and what they say; wait a moment for it."""
    future = jobs().ask(("verdict", question), partial(_verdict, ev))
    Jobs.settle([future], _PATIENCE_SECONDS)
    return future


def show_indicators(ev: Evaluation, verdict: Future[Verdict], theme: ThemeName) -> None:
    """Show the indicators as a list; their noise follows when it is computed."""
    known = verdict.result()[0] if verdict.done() else None
    st.html(cards_html(card_rows(ev, known), theme))
    if known is None:
        rerun_when_done(verdict, "Computing intervals …")
    else:
        st.html(f'<p class="rise-note">{legend_html(ev, known)}</p>')


def show_reading(verdict: Future[Verdict]) -> None:
    """Show the reading, once it is there."""
    if verdict.done():
        st.html(reading_html(verdict.result()[1]))


def _verdict(ev: Evaluation) -> Verdict:
    """Return what is known of the numbers' noise, and what they say in words."""
    try:
        return _resampled(ev)
    except Exception as error:  # the page shows the values without their noise, and why
        return not_resampled(ev, f"No intervals: {problem_of(error)}"), ()


def _resampled(ev: Evaluation) -> Verdict:
    known = ev.uncertainty()
    if ev.base_rates == "equal":
        return known, read(ev, known)
    try:
        equal = ev.with_settings(base_rates="equal")
    except RiseError:  # a group with one label only: there are no equal base rates
        return known, read(ev, known)
    return known, read(ev, known, equal, equal.uncertainty())


def show_groups(ev: Evaluation) -> None:
    """Show rates, medians and knees of every group."""
    st.dataframe(
        ev.group_table(),
        hide_index=True,
        alt="Rates, medians and knees of every group.",
        column_config=_GROUP_COLUMNS,
    )


def show_knees(ev: Evaluation) -> None:
    """Show how far the groups' knees lie apart, or why there are none."""
    reasons = [
        f"{curve.label}: {why}"
        for curve in (ev.overall, *ev.groups.values())
        for why in curve.knee_reasons.values()
    ]
    for reason in reasons:
        st.text(reason)
    if ev.pair_displacements:
        st.dataframe(
            ev.displacements,
            hide_index=True,
            alt="How far the knees of every group lie from the other group's.",
            column_config=_KNEE_COLUMNS,
        )


def show_about(experiment: Experiment, run: Run) -> None:
    """Show what the store says of data set, algorithm and run."""
    notes = {
        f"Data set: {experiment.name}": experiment.tags.get("mlflow.note.content"),
        f"Algorithm: {run.algorithm}": run.tags.get("mlflow.note.content"),
    }
    for heading, note in notes.items():
        if note:
            st.html(section_html(heading))
            st.text(note)
    facts = {name: value for name, value in run.tags.items() if not name.startswith("mlflow.")}
    st.dataframe(
        [
            {"what": what, "name": name, "value": str(value)}
            for what, values in (
                ("parameter", run.params),
                ("tag", facts),
                ("metric", run.metrics),
            )
            for name, value in values.items()
        ],
        hide_index=True,
        alt="Parameters, tags and metrics of the run.",
    )


def _number(label: str, help: str, form: str = "%.3f") -> Any:  # noqa: A002, the word of Streamlit
    return st.column_config.NumberColumn(label, help=help, format=form)


_GROUP_COLUMNS = {
    "group": "Group",
    "n": _number("Rows", "Rows of the group.", "localized"),
    "share": _number("Share", "Share of all rows, by weight.", "percent"),
    "base_rate": _number("Base rate", "Share of positive labels."),
    "positive_rate": _number("Positive rate", "Share of positive decisions."),
    "mean_score": _number("Mean score", "Mean of the scores."),
    "accuracy": _number("Accuracy", "Share of right decisions."),
    "median_residual": _number("Median residual", "The horizontal ruler."),
    "median_position": _number("Median position", "Median percentile among all rows."),
    "left_knee_residual": _number("◆ residual", "Residual of the left knee."),
    "left_knee_percentile": _number("◆ percentile", "Percentile among all rows."),
    "right_knee_residual": _number("★ residual", "Residual of the right knee."),
    "right_knee_percentile": _number("★ percentile", "Percentile among all rows."),
}
_KNEE_COLUMNS = {
    "side": "Side",
    "group": "Group",
    "reference": "Against",
    "delta_h": _number("Δh", "Difference of the knees' percentiles."),
    "delta_d": _number("Δd", "Difference of the knees' residuals."),
    "h": _number("H", "Δh over the percentile of the knee of all rows.", "%.4g"),
    "v": _number("V", "Δd over the residual of the knee of all rows.", "%.4g"),
}
