"""The Diagnose page: where a model errs, and for whom."""

from __future__ import annotations

from functools import partial

import streamlit as st

from rise_app import loaders, questions, switches, views
from rise_app.band_views import source_of
from rise_app.bootstrap import begin
from rise_app.closer_views import show_closer
from rise_app.connection import stop_with
from rise_app.loaders import Analysis
from rise_app.mapping import keep_roles, roles_for, show_mapping
from rise_app.messages import show_error, show_notes
from rise_app.tables import open_table
from rise_app.writing_views import show_save
from rise_core.exceptions import RiseError

stage = begin("Diagnose")

try:
    with stage.switches:
        experiment, run = switches.choose_from_store(stage.store)
except RiseError as error:
    stop_with("The runs cannot be read.", error)

try:
    with stage.switches:
        table, picked = open_table(stage.store, run)
except RiseError as error:
    views.show_run(run)
    stop_with("This run has no table that can be read.", error)

roles = roles_for(stage.store, run, table)
show_columns = partial(show_mapping, stage.store, run, table, roles, picked)
if questions.is_open(table, roles):
    views.show_run(run)
    keep = partial(keep_roles, stage.store, run, picked)
    questions.show_question(table, roles, keep, scope="The answer holds for the experiment.")
    show_columns()
    st.stop()
try:
    predictions = loaders.predictions_of(table, roles)
    with stage.switches:
        environment = switches.choose_environment(run, predictions)
        attribute = switches.choose_attribute(list(predictions.features))
        settings = switches.choose_settings()
    analysis = Analysis(environment, attribute, settings)
    question = loaders.question_of(run, table, roles, predictions, analysis)
    ev = loaders.evaluation(question, predictions)
except RiseError as error:
    views.show_run(run)
    show_error("This run's table cannot be evaluated as it is read now.", error)
    show_columns()
    st.stop()

views.show_evaluation(run, ev, environment)
show_notes((*table.notes, *predictions.notes))
picture, numbers = st.columns([2.3, 1], gap="large")
with picture:
    draw = views.show_curve(ev, stage.theme, source_of(table, roles))
verdict = views.ask_verdict(ev, question)
with numbers:
    views.show_indicators(ev, verdict, stage.theme)
with picture:
    views.show_reading(verdict)
show_closer(
    ev,
    question,
    verdict,
    stage.theme,
    after={
        "Columns": show_columns,
        "About": partial(views.show_about, experiment, run),
        "Save": partial(show_save, stage.store, run, table, roles, ev, question, verdict, draw),
    },
)
