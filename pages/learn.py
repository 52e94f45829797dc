"""The Learn page: what does fair look like? Synthetic models, sliders, and the words."""

from __future__ import annotations

import streamlit as st

from rise_app import learn_views, switches, views
from rise_app.bootstrap import begin_alone
from rise_app.cards import section_html, title_html
from rise_app.messages import show_error
from rise_core.exceptions import RiseError

scene = begin_alone("Learn")
st.html(title_html("Learn", "what does fair look like?"))
learn_views.show_badge()
with scene.switches:
    settings = switches.choose_settings()
lesson = learn_views.choose_lesson()
st.html(section_html(lesson.question))

sliders, picture, numbers = st.columns([1, 2.5, 1.35], gap="medium")
with sliders:
    model = learn_views.choose_model(lesson)
try:
    ev = learn_views.synthetic_evaluation(model, settings)
except RiseError as error:
    show_error("These settings cannot be evaluated.", error)
    st.stop()
with picture, st.container(key="synthetic"):
    views.show_curve(ev, scene.theme)
verdict = views.ask_verdict(ev, learn_views.question_of(model, settings))
with numbers:
    learn_views.show_answer(lesson, model, settings)
    views.show_indicators(ev, verdict, scene.theme)
with picture:
    views.show_reading(verdict)

indicators, examples, glossary, paper = st.tabs(
    ["Indicators", "All examples", "Glossary", "The paper's numbers"],
    key="words",
    bind="query-params",
)
with indicators:
    learn_views.show_indicators()
with examples:
    if examples.open:
        learn_views.show_examples()
with glossary:
    learn_views.show_glossary()
with paper:
    learn_views.show_paper()
