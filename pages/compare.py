"""The Compare page: which model to take."""

from __future__ import annotations

import streamlit as st

from rise_app import compare_views, export, loaders, switches
from rise_app.bootstrap import begin
from rise_app.loaders import Analysis
from rise_app.picks import evaluate_picks, pick_runs

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
if len(picked.evaluations) < 2:
    st.info("Fewer than two runs can be evaluated with these switches.")
    st.stop()

compare_views.show_comparison(
    f"{len(picked.runs)} models on {picks.experiment.name}",
    picked.questions,
    picked.evaluations,
    stage.theme,
    {
        name: export.reference_of(stage.store, run, *tables[run.id][:2])
        for name, run in picked.runs.items()
    },
    {name: str(run.algorithm) for name, run in picked.runs.items()},
)
