"""Parts of the Learn page: lessons, sliders, what the indicators see, the words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from html import escape
from math import isnan

import streamlit as st

from rise_app import loaders
from rise_app.address import linked, linked_number, remember
from rise_app.cards import badge_html, glossary_html, section_html
from rise_app.jobs import Jobs, jobs, rerun_when_done
from rise_app.loaders import ALL_ROWS, Question
from rise_core import Evaluation, Settings
from rise_core.glossary import PAPER, PUBLISHED, TERMS
from rise_core.lessons import LESSONS, Lesson
from rise_core.synthetic import BOUNDS, FEATURE, SyntheticModel
from rise_core.uncertainty import Uncertainty
from rise_core.wording import METRICS, SHOWN, format_short

__all__ = [
    "choose_lesson",
    "choose_model",
    "question_of",
    "show_answer",
    "show_badge",
    "show_examples",
    "show_glossary",
    "show_indicators",
    "show_paper",
    "synthetic_evaluation",
]

_PATIENCE_SECONDS = 2.0
_FIRST = next(iter(LESSONS))

# Label and help of every slider, in the order in which they are shown.
_SLIDERS = {
    "separation": ("Separation", "How far the classes lie apart in what the model sees."),
    "noise": ("Noise", "Random error in every score, in logits."),
    "confidence": ("Confidence", "Factor on the logits: above 1 over-confident, below 1 timid."),
    "bias": ("Bias of B", "Added to every score of B, in logits. Below 0: B is under-estimated."),
    "extra_noise": ("Noise of B", "Random error in the scores of B alone, in logits."),
    "collapse": ("Collapse", "1 gives every row the same score."),
    "rate_a": ("Base rate of A", "Share of positive labels in A."),
    "rate_b": ("Base rate of B", "Share of positive labels in B."),
    "share_b": ("Share of B", "Share of B among the rows."),
    "rows": ("Rows", "Fewer rows: wider intervals."),
    "seed": ("Draw", "Another draw of the same model: what changes is chance."),
}


def show_badge() -> None:
    """Say that nothing on the page is real."""
    st.html(
        badge_html(
            "Synthetic",
            "Every row here is made by a formula: no data set, no run, no person.",
        )
    )


def choose_lesson() -> Lesson:
    """Choose a lesson; another one sets the sliders to its model."""
    key = linked(
        st.pills,
        "Example",
        list(LESSONS),
        "example",
        default=_FIRST,
        format_func=lambda key: LESSONS[key].title,
        label_visibility="collapsed",
        then=_forget_sliders,
    )
    return LESSONS[key]


def _forget_sliders() -> None:
    for name in (*_SLIDERS, "residual", "rates", "threshold"):
        remember(name, None)


def choose_model(lesson: Lesson) -> SyntheticModel:
    """Show the sliders, at first at the lesson's model; what differs is in the address."""
    chosen = {}
    with st.container(key="sliders", gap="small"):
        for name, (label, about) in _SLIDERS.items():
            bound, value = BOUNDS[name], getattr(lesson.model, name)
            kind = type(value)
            chosen[name] = linked_number(
                label,
                kind(bound.low),
                kind(bound.high),
                name,
                default=value,
                step=kind(bound.step),
                help=about,
            )
    return SyntheticModel(**chosen)


def question_of(model: SyntheticModel, settings: Settings) -> Question:
    """Name an evaluation of a synthetic model for the caches."""
    return Question(f"synthetic {model!r}", "", ALL_ROWS, FEATURE, settings)


def show_answer(lesson: Lesson, model: SyntheticModel, settings: Settings) -> None:
    """Show the lesson's answer; say so when the picture is no longer the lesson's."""
    st.html(f'{section_html("Answer")}<p class="rise-answer">{escape(_answered(lesson.key))}</p>')
    moved = [
        _SLIDERS[field.name][0]
        for field in fields(model)
        if getattr(model, field.name) != getattr(lesson.model, field.name)
    ]
    if settings != Settings():
        moved.append("the switches in the sidebar")
    if moved:
        st.caption(f"Changed since: {', '.join(moved)}. The answer is the example's.")
        st.button("Back to the example", icon=":material/undo:", on_click=_forget_sliders)


@st.cache_data(show_spinner=False)
def _answered(key: str) -> str:
    return LESSONS[key].answered()


Told = Mapping[str, tuple[Evaluation, Uncertainty]]


def show_examples() -> None:
    """Show what each indicator says of every example, once it is computed."""
    future = jobs().ask(("lessons",), _lessons)
    Jobs.settle([future], _PATIENCE_SECONDS)
    if not future.done():
        rerun_when_done(future, "Computing the examples …")
        return
    _show_matrix(future.result())


def _lessons() -> Told:
    known = {}
    for key, lesson in LESSONS.items():
        ev = lesson.evaluation()
        known[key] = (ev, ev.uncertainty())
    return known


def show_indicators() -> None:
    """Show what each indicator is, sees and misses."""
    rows = "".join(
        f"<tr><th scope='row'>{metric.name}<small>{metric.meaning} {metric.arrow}</small></th>"
        f"<td>{escape(metric.explains)}<code>{escape(metric.formula)}</code></td></tr>"
        for metric in (METRICS[key] for key in SHOWN)
    )
    st.html(f'<table class="rise-words"><tbody>{rows}</tbody></table>')


def _show_matrix(known: Told) -> None:
    head = "".join(f"<th scope='col'>{METRICS[key].name}</th>" for key in SHOWN)
    body = "".join(
        f"<tr><th scope='row'>{escape(LESSONS[lesson].title)}</th>"
        + "".join(_cell(key, ev, noise) for key in SHOWN)
        + "</tr>"
        for lesson, (ev, noise) in known.items()
    )
    st.html(
        '<div class="rise-scroll"><table class="rise-matrix rise-plain">'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        '<p class="rise-note">Synthetic. Bold with ●: outside of what random groupings give. '
        "Pale: not told from random. –: undefined.</p>"
    )


def _cell(key: str, ev: Evaluation, noise: Uncertainty) -> str:
    estimate = noise[key]
    value = format_short(estimate.value)
    if isnan(estimate.value):
        return f'<td class="quiet" title="{escape(ev.undefined.get(key, ""))}">{value}</td>'
    if key == "accuracy":
        return f'<td title="majority baseline {ev.majority_accuracy:.3f}">{value}</td>'
    if estimate.distinguishable:
        return f'<td class="told" title="outside of what random groupings give">● {value}</td>'
    return f'<td class="quiet" title="not told from a random grouping">{value}</td>'


def show_glossary() -> None:
    """Show the words of the method with their formulas."""
    st.html(glossary_html([(term.name, term.meaning, term.formula) for term in TERMS]))


def show_paper() -> None:
    """Show the published numbers that are known, marked as the paper's."""
    st.html(
        '<p class="rise-note">Numbers of the paper, not of your runs and not of the sliders. '
        f"Table 2 of {PAPER}: BDD100K, 5,921 rows, label person, groups by weather, residual "
        "ŷ − p. Beside each, the same from the authors' own predictions, computed by RISE.</p>"
    )
    head = "".join(
        f"<th scope='col'>{METRICS[key].name} {METRICS[key].arrow}</th>"
        for key in ("f_mean", "f_shift", "f_acc")
    )
    body = ""
    for row in PUBLISHED:
        cells = "".join(
            f"<td>{printed:.3f}<small>{again:.6f}</small></td>"
            for printed, again in zip((row.f_mean, row.f_shift, row.f_acc), row.again, strict=True)
        )
        note = f"<small>{escape(row.note)}</small>" if row.note else ""
        body += f"<tr><th scope='row'>{escape(row.model)} (paper){note}</th>{cells}</tr>"
    st.html(
        '<div class="rise-scroll"><table class="rise-matrix rise-plain">'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def synthetic_evaluation(model: SyntheticModel, settings: Settings) -> Evaluation:
    """Evaluate a synthetic model, or get it from the cache; raises RiseError."""
    return loaders.evaluation(question_of(model, settings), model.predictions())
