"""What leaves the app as a file: a report, a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from importlib.util import find_spec
from re import sub
from typing import Any, Literal

import streamlit as st

from rise_app.address import linked
from rise_core import Comparison, Evaluation
from rise_core.columns import Roles
from rise_core.reading import Sentence
from rise_core.report import RunReference, chart_image, comparison_report, evaluation_report
from rise_core.tracking import Run, Store, Table
from rise_core.uncertainty import Uncertainty

__all__ = [
    "CAN_EXPORT",
    "reference_of",
    "report_maker",
    "show_comparison_export",
    "show_evaluation_export",
]

_PICTURES: dict[Literal["png", "svg"], str] = {"png": "image/png", "svg": "image/svg+xml"}
_PICTURE_WIDTH = 900
_NO_CHOICE = "(open)"
CAN_EXPORT = find_spec("vl_convert") is not None
_WHY_NOT = "Needs vl-convert-python: pip install vl-convert-python"


def reference_of(store: Store, run: Run, table: Table, roles: Roles) -> RunReference:
    """Return what a report says of a run: where it is, and how its columns were read."""
    facts = {
        "data set": run.dataset or "",
        "seed": "" if run.seed is None else str(run.seed),
        "store": store.label,
    }
    return RunReference(
        run.id,
        run.name,
        url=store.page_of(run),
        table=table.path,
        mapping=roles.to_dict(),
        facts={name: value for name, value in facts.items() if value},
    )


def show_comparison_export(
    found: Comparison,
    title: str,
    fairness: str,
    baseline: str,
    runs: Mapping[str, RunReference],
    algorithms: Mapping[str, str],
) -> None:
    """Take down the choice and a note, and hand over the report."""
    left, right = st.columns([1, 2])
    with left:
        choice = linked(
            st.selectbox,
            "Our choice",
            [_NO_CHOICE, *found.models],
            "choice",
            default=_NO_CHOICE,
            help="Goes into the report, with the note.",
        )
    with right:
        note = st.text_area("Note for the minutes", key="note", persist_state="session", height=80)
    make = partial(
        comparison_report,
        found,
        title=title,
        fairness=fairness,
        baseline=baseline,
        choice=None if choice == _NO_CHOICE else choice,
        note=note or "",
        runs=runs,
        algorithms=algorithms,
        address=st.context.url,
    )
    _download("Report (one HTML file)", make, f"rise {title}.html", "text/html")


def show_evaluation_export(
    ev: Evaluation,
    verdict: Future[tuple[Uncertainty, tuple[Sentence, ...]]],
    title: str,
    run: RunReference,
    draw: Callable[..., Any],
) -> None:
    """Hand over the report of one model, and its picture."""
    report = report_maker(ev, verdict, title, run)
    _download("Report (one HTML file)", report, f"rise {title}.html", "text/html")
    for form, mime in _PICTURES.items():
        _download(
            f"Chart ({form.upper()})",
            partial(_picture, draw, form),
            f"rise {title}.{form}",
            mime,
        )


def report_maker(
    ev: Evaluation,
    verdict: Future[tuple[Uncertainty, tuple[Sentence, ...]]],
    title: str,
    run: RunReference,
) -> Callable[[], str]:
    """Return what makes the report of one model, with the intervals if they are there by now."""
    known = verdict.result()[0] if verdict.done() else None
    return partial(
        evaluation_report,
        ev,
        known,
        title=title,
        name=title,
        run=run,
        address=st.context.url,
    )


def _picture(draw: Callable[..., Any], form: Literal["png", "svg"]) -> bytes:
    """Draw the chart for a white page."""
    return chart_image(draw(theme="light", width=_PICTURE_WIDTH), form)


def _download(label: str, make: Callable[[], str | bytes], name: str, mime: str) -> None:
    """Draw a button that makes its file when it is pressed."""
    st.download_button(
        label,
        make,
        file_name=sub(r"[^\w.() -]+", "_", name),
        mime=mime,
        icon=":material/download:",
        on_click="ignore",
        disabled=not CAN_EXPORT,
        help=None if CAN_EXPORT else _WHY_NOT,
    )
