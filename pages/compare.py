"""The Compare page: which model to take."""

from __future__ import annotations

import streamlit as st

from rise_app import compare_views, export, loaders, switches
from rise_app.address import linked
from rise_app.bootstrap import begin
from rise_app.cards import facts_html, title_html
from rise_app.compare_views import FAIRNESS, section
from rise_app.jobs import Jobs, rerun_when_done
from rise_app.loaders import Analysis
from rise_app.messages import show_error
from rise_app.panels import show_panels
from rise_app.picks import evaluate_picks, pick_runs
from rise_core.exceptions import RiseError
from rise_core.wording import METRICS

# Small comparisons are done by then, and the page is drawn once.
PATIENCE_SECONDS = 0.5

stage = begin("Compare")

picks = pick_runs(stage)
tables = picks.tables
if len(picks.runs) < 2:
    st.info("Pick at least two runs that can be read.")
    st.stop()

with stage.switches:
    analysis = Analysis(
        switches.choose_environment_of_many(loaders.environments_in(tables.values())),
        switches.choose_attribute(loaders.attributes_in(tables.values())),
        switches.choose_settings(),
    )
picked = evaluate_picks(picks, analysis)
questions, models = picked.questions, picked.evaluations
if len(models) < 2:
    st.info("Fewer than two runs can be evaluated with these switches.")
    st.stop()

title = f"{len(models)} models on {picks.experiment.name}"
values, comparison = compare_views.ask_comparison(questions, models)
Jobs.settle([comparison], PATIENCE_SECONDS)
waiting = not comparison.done()
if waiting and not values.done():
    st.html(title_html(title))
    rerun_when_done(values, "Matching the rows of the models …")
    st.stop()
try:
    found = values.result() if waiting else comparison.result()
except RiseError as error:
    show_error("These models cannot be compared.", error)
    st.stop()

place = compare_views.where(questions)
st.html(title_html(title, place) + facts_html(compare_views.facts(found)))
bar = st.container(horizontal=True, vertical_alignment="bottom")
with bar:
    fairness = linked(
        st.selectbox,
        "Fairness by",
        list(FAIRNESS),
        "by",
        default="w1",
        width=220,
        format_func=lambda key: f"{METRICS[key].name}, {METRICS[key].meaning}",
    )
    baseline = linked(
        st.selectbox,
        "Compare with",
        list(found.models),
        "baseline",
        default=next(iter(found.models)),
        width=260,
    )
compare_views.show_matrix(found, fairness, stage.theme)
left, right = st.columns(2, gap="large")
with left:
    section("Trade-off")
    compare_views.show_tradeoff(found, fairness, stage.theme)
with right:
    if waiting:
        section("What the numbers support")
        rerun_when_done(comparison, "Resampling all models together, for intervals …")
    else:
        compare_views.show_summary(found, fairness)
if not waiting:
    section(f"Differences to {baseline}")
    compare_views.show_differences(found, baseline, stage.theme)
section("Curves on the same axes")
show_panels(tuple(questions.items()), found.models, stage.theme)
algorithms = {name: str(run.algorithm) for name, run in picked.runs.items()}
if len(set(algorithms.values())) < len(algorithms):
    section("Seeds folded: mean and range of each algorithm")
    compare_views.show_folded(found, algorithms)
if waiting:
    st.stop()
section("Decision")
references = {
    name: export.reference_of(stage.store, run, *tables[run.id][:2])
    for name, run in picked.runs.items()
}
export.show_comparison_export(
    found, f"{title}, {place}" if place else title, fairness, baseline, references, algorithms
)
