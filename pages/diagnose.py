"""The Diagnose page: where a model errs, and for whom."""

from __future__ import annotations

import streamlit as st

from rise_app import loaders, switches, views
from rise_app.bootstrap import begin
from rise_app.loaders import Analysis
from rise_app.messages import show_error, show_notes
from rise_core.exceptions import RiseError

stage = begin("Diagnose")

try:
    with stage.switches:
        run = switches.choose_from_store(stage.store)
except RiseError as error:
    show_error("The runs cannot be read.", error)
    st.stop()

try:
    table = loaders.load_table(stage.store, run)
    predictions = loaders.predictions_of(table)
    with stage.switches:
        environment = switches.choose_environment(run, predictions)
        attribute = switches.choose_attribute(list(predictions.features))
        settings = switches.choose_settings()
    ev = loaders.evaluation(run, table, Analysis(environment, attribute, settings))
except RiseError as error:
    views.show_run(run)
    show_error("This run cannot be evaluated.", error)
    st.stop()

views.show_evaluation(run, ev, environment)
show_notes((*table.notes, *predictions.notes))
picture, numbers = st.columns([2.3, 1], gap="large")
with picture:
    views.show_curve(ev, stage.theme)
with numbers:
    views.show_indicators(ev, stage.theme)
views.show_tables(ev)
