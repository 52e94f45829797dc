"""The two reports: several models compared, and one model."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import rise_core
from rise_core.charts import curve_panels, rise_chart, tradeoff_chart
from rise_core.charts.theme import ThemeName
from rise_core.exceptions import RiseError
from rise_core.reading import read, read_comparison
from rise_core.report import sections
from rise_core.report.figures import Figures, engine_versions, vega_bundle
from rise_core.report.html import STRIP_STYLE, Markup, facts, json_block, link, plain, section, text
from rise_core.report.sections import RunReference, records
from rise_core.wording import METRICS

if TYPE_CHECKING:
    from rise_core.comparison import Comparison
    from rise_core.evaluation import Evaluation
    from rise_core.uncertainty import Uncertainty

__all__ = ["comparison_report", "evaluation_report"]

_HERE = Path(__file__).parent
# Nothing is fetched, whatever a run's name holds; Vega needs 'unsafe-eval' for its expressions.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)


def comparison_report(
    found: Comparison,
    *,
    title: str,
    fairness: str = "w1",
    baseline: str | None = None,
    choice: str | None = None,
    note: str = "",
    runs: Mapping[str, RunReference] | None = None,
    algorithms: Mapping[str, str] | None = None,
    address: str | None = None,
    when: datetime | None = None,
) -> str:
    """One HTML file that holds a comparison: for the minutes, and for a stick without a network.

    Parameters
    ----------
    found : the comparison
    title : heading of the file
    fairness : key of the indicator in the trade-off, the order of models and the summary
    baseline : model to compare with; that of the comparison by default
    choice, note : the model that was taken, and why; choice None is "not chosen"
    runs : model name to where its predictions came from
    algorithms : model name to algorithm, to fold seeds
    address : of the view in the app, as a link
    when : time of the report; now by default

    Returns
    -------
    HTML; fetches nothing, follows the reader's light or dark scheme, prints, and holds every number
    as JSON in the element ``#data``

    Raises
    ------
    RiseError
        vl-convert-python is not installed, or a model or an indicator is not known
    """
    _check(found, fairness, baseline, choice)
    baseline = found.baseline if baseline is None else baseline
    when = datetime.now(UTC) if when is None else when
    runs, algorithms = runs or {}, algorithms or {}
    summary = read_comparison(found, fairness)
    readings = {name: read(ev, found.uncertainties[name]) for name, ev in found.models.items()}
    first = next(iter(found.models.values()))
    is_folded = len({algorithms.get(name, name) for name in found.models}) < len(found.models)

    figures = Figures()
    parts = [
        section("summary", "What the numbers support", sections.reading(summary)),
        section(
            "indicators",
            "Indicators",
            sections.matrix(found, fairness),
            sections.how_to_read(next(iter(found.uncertainties.values()))),
        ),
        section(
            "trade-off",
            f"Trade-off: accuracy and {METRICS[fairness].name}",
            f'<div class="tradeoff">{_tradeoff(figures, found, fairness)}</div>',
            sections.front(found, fairness),
        ),
        section("curves", "Curves on the same axes", _curves(figures, found)),
        section("differences", f"Differences to {baseline}", sections.differences(found, baseline)),
    ]
    if is_folded:
        parts.append(section("seeds", "Seeds folded", sections.folded(found, algorithms)))
    parts.append(
        section(
            "models",
            "Each model",
            *(
                f"<h3>{text(name)}</h3>{sections.reading(readings[name])}{sections.groups(ev)}"
                for name, ev in found.models.items()
            ),
        )
    )
    how = {"rows": found.pairing.how, **sections.settings(found.models)}
    parts.append(
        section("compared", "What was compared", facts(how), sections.rows_account(found.models))
    )
    parts += _ground(found.uncertainties, first, runs)
    data = {
        "kind": "comparison",
        "fairness": fairness,
        "baseline": baseline,
        "choice": choice,
        "paired": found.paired,
        "pairing": found.pairing.how,
        "confidence": found.confidence,
        "n_boot": found.n_boot,
        "n_perm": found.n_perm,
        "random_state": found.random_state,
        "summary": [sentence.text for sentence in summary],
        "table": records(found.table),
        "differences": records(found.against(baseline)),
        "ranking": records(found.ranking(fairness)),
        "pareto": records(found.pareto(fairness)),
        "folded": records(found.fold(algorithms)) if is_folded else None,
        "models": {
            name: _model(ev, found.uncertainties[name], runs.get(name), readings[name])
            for name, ev in found.models.items()
        },
    }
    under = f"{len(found.models)} models · {found.pairing.how}"
    decision = _decision(choice, note, asked=True)
    return _page(title, under, decision, parts, figures, data, when, address, note)


def evaluation_report(
    ev: Evaluation,
    known: Uncertainty | None = None,
    *,
    title: str,
    name: str = "model",
    equal: Evaluation | None = None,
    known_equal: Uncertainty | None = None,
    note: str = "",
    run: RunReference | None = None,
    address: str | None = None,
    when: datetime | None = None,
) -> str:
    """One HTML file that holds what is known of one model.

    Parameters
    ----------
    ev, known : the evaluation and its uncertainty, ``ev.uncertainty()`` by default
    title : heading of the file
    name : what the model is called in tables
    equal, known_equal : the same rows at equal base rates, for the reading
    note : text of the reader's own
    run : where the predictions came from
    address, when : as in `comparison_report`

    Returns
    -------
    HTML, as in `comparison_report`
    """
    known = ev.uncertainty() if known is None else known
    when = datetime.now(UTC) if when is None else when
    sentences = read(ev, known, equal, known_equal)
    runs = {} if run is None else {name: run}
    figures = Figures()
    parts = [
        section("summary", "What the numbers support", sections.reading(sentences)),
        section(
            "curves",
            "Curves",
            figures.place(
                lambda theme: rise_chart(ev, view="groups", theme=theme),
                "Each group's residuals, sorted, against the rank within the group. ◆ ★ knees.",
            ),
            figures.place(
                lambda theme: rise_chart(ev, view="global", theme=theme),
                "All rows' residuals, sorted, coloured by the group that is over-represented; "
                f"drawn from {ev.n:,} rows.",
            ),
        ),
        section(
            "indicators", "Indicators", sections.indicators(known), sections.how_to_read(known)
        ),
        section("groups", "Groups", sections.groups(ev)),
        section("details", "Where the gap lies", sections.details(known)),
        section(
            "compared",
            "What was evaluated",
            facts(sections.settings({name: ev})),
            sections.rows_account({name: ev}),
        ),
        *_ground({name: known}, ev, runs),
    ]
    data = {"kind": "evaluation", "models": {name: _model(ev, known, run, sentences)}}
    under = f"{ev.n:,} rows · positive class {ev.predictions.pos_label} · by {ev.feature}"
    decision = _decision(None, note, asked=False)
    return _page(title, under, decision, parts, figures, data, when, address, note)


def _check(found: Comparison, fairness: str, baseline: str | None, choice: str | None) -> None:
    if fairness not in METRICS or fairness == "accuracy":
        known = ", ".join(key for key in METRICS if key != "accuracy")
        raise RiseError(f"No fairness indicator {fairness!r}. There are: {known}.")
    for what, model in (("baseline", baseline), ("choice", choice)):
        if model is not None and model not in found.models:
            known = ", ".join(map(repr, found.models))
            raise RiseError(f"The {what} {model!r} is none of the models. There are: {known}.")


def _tradeoff(figures: Figures, found: Comparison, fairness: str) -> Markup:
    frame = found.tradeoff(fairness)
    if frame[["x", "y"]].dropna().empty:
        return Markup(f"<p>{METRICS[fairness].name} is undefined for every model.</p>")
    majority = found.majority_accuracy
    return figures.place(
        lambda theme: tradeoff_chart(frame, fairness, baseline=majority, theme=theme),
        "Lines: intervals. Scroll to zoom, drag to move, double-click to go back.",
    )


def _curves(figures: Figures, found: Comparison) -> Markup:
    rows = sorted({ev.n for ev in found.models.values()})
    drawn = " to ".join(f"{n:,}" for n in (rows[0], rows[-1])[: len(rows)])

    def panels(theme: ThemeName) -> dict[str, Any]:
        return dict(curve_panels(found.models, theme=theme))

    return Markup(
        sections.curve_key(found.models)
        + figures.place_each(
            panels,
            "Sorted residuals of each group against the rank within the group; grey: all rows. "
            f"Thinned for drawing from {drawn} rows a model; every number is from all of them.",
        )
    )


def _ground(
    known: Mapping[str, Uncertainty], first: Evaluation, runs: Mapping[str, RunReference]
) -> list[Markup]:
    """Sections that both reports end with."""
    parts = [
        section("uncertainty", "How the uncertain numbers were made", sections.resampling(known)),
        section("definitions", "Definitions", sections.definitions(first.residual)),
    ]
    if runs:
        parts.append(sections.runs_section(runs))
    told = (
        '<p class="quiet">All numbers of this file are also in it as JSON, unrounded, in the '
        "element with the id “data”.</p>"
    )
    return [*parts, section("software", "Software", facts(_software()), told)]


def _software() -> dict[str, str]:
    own = {
        "rise-core": rise_core.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pandas": pd.__version__,
    }
    return own | engine_versions()


def _model(
    ev: Evaluation, known: Uncertainty, run: RunReference | None, sentences: Any
) -> dict[str, Any]:
    return {
        "evaluation": ev.to_dict(),
        "majority_accuracy": ev.majority_accuracy,
        "uncertainty": records(known.to_frame()),
        "resampled": known.resampled,
        "within": known.within,
        "notes": list(known.notes),
        "reading": [sentence.text for sentence in sentences],
        "run": None if run is None else asdict(run),
    }


def _decision(choice: str | None, note: str, *, asked: bool) -> Markup:
    if not (asked or note):
        return Markup("")
    taken = f"<b>Choice:</b> {text(choice) if choice else 'none recorded'}" if asked else ""
    written = f"<p>{text(note)}</p>" if note else ""
    return Markup(f'<div class="choice">{taken}{written}</div>')


def _page(
    title: str,
    under: str,
    decision: Markup,
    parts: list[Markup],
    figures: Figures,
    data: dict[str, Any],
    when: datetime,
    address: str | None,
    note: str,
) -> str:
    made = f"{when.day} {when:%B %Y, %H:%M} {when.tzname() or ''}".strip()
    head = {"title": title, "made": when.isoformat(), "note": note, "address": address}
    data = {"format": "rise-report 1", **head, "software": _software(), **data}
    source = f" · {link(address, 'open this view in the app')}" if address else ""
    return "".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">',
            f"<title>{text(title)}</title><style>{_file('style.css')}{_file(STRIP_STYLE.name)}</style></head><body><main>",
            f"<header><h1>{text(title)}</h1>",
            f'<p class="quiet">{text(under)} · {text(made)}{source}</p>{decision}',
            f'<nav aria-label="Contents">{_contents(parts)}</nav></header>',
            "<noscript><p>Charts need JavaScript; every number is in the tables.</p></noscript>",
            *parts,
            "</main>",
            json_block("data", plain(data)),
            json_block("charts", plain(figures.to_dict())),
            f"<script>{vega_bundle()}</script><script>{_file('charts.js')}</script>",
            "</body></html>\n",
        )
    )


def _contents(parts: list[Markup]) -> str:
    """Links to the sections; their anchors and headings are at the start of each."""
    links = []
    for part in parts:
        anchor = part.split('id="', 1)[1].split('"', 1)[0]
        heading = part.split("<h2", 1)[1].split(">", 1)[1].split("</h2>", 1)[0]
        links.append(f'<a href="#{anchor}">{heading}</a>')
    return "".join(links)


def _file(name: str) -> str:
    return (_HERE / name).read_text("utf-8")
