"""The Environments page: whether what a model does holds elsewhere."""

from __future__ import annotations

import streamlit as st

from rise_app import environment_views, loaders, switches
from rise_app.address import linked
from rise_app.bootstrap import begin
from rise_app.cards import facts_html, title_html
from rise_app.environment_views import section
from rise_app.jobs import Jobs
from rise_app.loaders import ALL_ROWS, Analysis
from rise_app.picks import evaluate_picks, pick_runs
from rise_app.switches import RATES
from rise_core import Evaluation
from rise_core.exceptions import RiseError
from rise_core.residuals import RESIDUALS
from rise_core.wording import METRICS

PATIENCE_SECONDS = 1.0

stage = begin("Environments")

picks = pick_runs(stage)
with stage.switches:
    attribute = switches.choose_attribute(loaders.attributes_in(picks.tables.values()))
    analysis = Analysis(ALL_ROWS, attribute, switches.choose_settings())


def has_environments(ev: Evaluation) -> None:
    """Refuse a table without an environment column."""
    if not ev.by_environment:
        raise RiseError("Its table has no environment column. Name one on the Diagnose page.")


picked = evaluate_picks(picks, analysis, has_environments)
questions, models = picked.questions, picked.evaluations
held_out = {
    name: run.environment if run.environment in models[name].by_environment else None
    for name, run in picked.runs.items()
}
if not models:
    st.info("Pick a run whose table has environments.")
    st.stop()

first = next(iter(models.values()))
st.html(
    title_html(f"Environments of {picks.experiment.name}")
    + facts_html(
        {
            "models": f"{len(models)}",
            "environments": "; ".join(
                dict.fromkeys(label for ev in models.values() for label in ev.by_environment)
            ),
            "positive class": first.predictions.pos_label,
            "groups": ", ".join(first.groups),
            "threshold": f"{first.threshold:g}",
            "residual": RESIDUALS[first.residual].symbol,
            "base rates": RATES[first.base_rates],
        }
    )
)
tasks = {name: environment_views.ask_parts(questions[name], ev) for name, ev in models.items()}
with st.container(horizontal=True, vertical_alignment="bottom"):
    by = switches.choose_indicator("Indicator", list(METRICS), width=260)
    model = linked(
        st.selectbox, "Model below", list(models), "model", default=next(iter(models)), width=260
    )
ev, out = models[model], held_out[model]
drift = environment_views.ask_drift(questions[model], ev, out)
futures = environment_views.all_of(tasks, drift)
Jobs.settle(futures, PATIENCE_SECONDS)
environment_views.watch_progress(futures)

section(f"{METRICS[by].name} of all models in all environments")
environment_views.show_heat_map(models, tasks, held_out, by, stage.theme)
section(f"{model}: curves of every environment on the same axes")
environment_views.show_curves(ev, questions[model], out, stage.theme)
section(f"{model}: pooled, mean over environments, and each environment")
environment_views.show_model(ev, tasks[model], out, stage.theme)
section(f"{model}: drift of the errors between environments")
environment_views.show_drift(drift, out, stage.theme)
