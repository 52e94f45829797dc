"""The Add predictions page: a file, no MLflow."""

from __future__ import annotations

from functools import partial

import streamlit as st

from rise_app import questions, switches, uploads, views
from rise_app.band_views import source_of
from rise_app.bootstrap import begin_alone
from rise_app.cards import facts_html, title_html
from rise_app.closer_views import show_closer
from rise_app.file_comparison import show_files_compared
from rise_app.loaders import ALL_ROWS
from rise_app.messages import show_error, show_notes
from rise_core.exceptions import RiseError

scene = begin_alone("Add predictions")
head = st.container()
uploads.add_files()
with scene.switches:
    upload = uploads.choose_upload()
if upload is None:
    with head:
        st.html(title_html("Add predictions"))
    uploads.show_what_is_needed()
    st.stop()

name = upload.table.path
came = {"file": f"{name} ({upload.table.size:,} bytes)"}
checked = None
asks = questions.is_open(upload.table, upload.roles, hard=True)
try:
    if not asks:
        checked = uploads.check(upload)
        predictions = checked.predictions
        with scene.switches:
            environment = switches.choose_environment(None, predictions)
            attribute = switches.choose_attribute(list(predictions.features))
            settings = switches.choose_settings()
        question = uploads.question_of(upload, environment, attribute, settings)
        ev = uploads.evaluation(question, predictions)
except RiseError as error:
    checked = None
    show_error("This file cannot be evaluated as it is read now.", error)
if checked is None:
    shape = "{:,} rows, {} columns".format(*upload.table.frame.shape)
    with head:
        st.html(title_html(name) + facts_html({"table": shape}))
    if asks:
        keep = partial(uploads.answer, upload)
        questions.show_question(upload.table, upload.roles, keep, hard=True)
    uploads.show_columns(upload)
    uploads.show_preview(upload)
    st.stop()

with head:
    views.show_header(name, ev, environment, came)
show_notes(checked.notes)
picture, numbers = st.columns([2.3, 1], gap="large")
with picture:
    draw = views.show_curve(ev, scene.theme, source_of(upload.table, upload.roles))
verdict = views.ask_verdict(ev, question)
with numbers:
    views.show_indicators(ev, verdict, scene.theme)
with picture:
    views.show_reading(verdict)
several = {}
if len(uploads.files()) > 1:
    compare = partial(show_files_compared, environment, attribute, settings, scene.theme)
    several["Compare files"] = compare
title = name if environment == ALL_ROWS else f"{name}, {environment}"
show_closer(
    ev,
    question,
    verdict,
    scene.theme,
    before={"Columns": partial(uploads.show_columns, upload)},
    after={
        **several,
        "Rows": partial(uploads.show_preview, upload),
        "Save": partial(uploads.show_save, upload, ev, verdict, title, draw),
        "Log as a run": partial(uploads.show_logging, upload, predictions),
    },
)
