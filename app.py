"""The Experiments page: what is there, and what is worth a look."""

from __future__ import annotations

import streamlit as st

from rise_app import address, loaders, runs_table, switches
from rise_app.bootstrap import begin
from rise_app.cards import facts_html, title_html
from rise_app.jobs import Jobs
from rise_app.loaders import Analysis
from rise_app.mapping import link_to_columns
from rise_app.messages import show_error
from rise_core.exceptions import RiseError

RUNS_A_PAGE = 25
# What a fast store needs; a slower one is drawn line by line.
PATIENCE_SECONDS = 2.0

stage = begin("Experiments")
st.html(title_html("Experiments"))

bar = st.container(horizontal=True, vertical_alignment="bottom")
try:
    with bar:
        found = loaders.experiments(stage.store)
        experiment = switches.choose_experiment(found, label="Experiment", width=320)
    runs = loaders.runs_of(stage.store, experiment.id)
except RiseError as error:
    show_error("The experiments cannot be read.", error)
    st.stop()

with bar:
    runs = switches.filter_runs(runs)
    if note := experiment.tags.get("mlflow.note.content"):
        with st.popover("About", icon=":material/info:"):
            st.text(note)
if not runs:
    st.info("No run matches. Change the filter, or choose another experiment.")
    st.stop()
shown = switches.page_of(runs, RUNS_A_PAGE)

facts = runs_table.ask_facts(stage.store, shown)
Jobs.settle(list(facts.values()), PATIENCE_SECONDS)
attributes, environments = runs_table.known_groups(facts)
with stage.switches:
    analysis = Analysis(
        switches.choose_environment_of_many(environments),
        switches.choose_attribute(attributes),
        switches.choose_settings(),
    )
lines = runs_table.ask_lines(stage.store, shown, analysis)
Jobs.settle(list(lines.values()), PATIENCE_SECONDS)
noise = runs_table.ask_noise(stage.store, shown, analysis)
waiting = bool(runs_table.pending(lines) or runs_table.pending(noise))


@st.fragment(run_every=1.0 if waiting else None)
def table() -> None:
    """Draw the runs, again every second while numbers are computed."""
    left = runs_table.pending({**lines, **noise})
    if waiting and not left:
        st.rerun()  # the switches learn what the last tables hold
    if left:
        with st.container(horizontal=True, vertical_alignment="center"):
            done = len(shown) - len(left)
            st.progress(done / len(shown), text=f"Computing: {done} of {len(shown)} runs")
            st.button("Stop", on_click=runs_table.stop, args=({**lines, **noise},))
    st.html(facts_html(runs_table.common_facts(lines, analysis)))
    actions = st.container(horizontal=True, vertical_alignment="center")
    with actions:
        buttons = st.container(horizontal=True, vertical_alignment="center", width="stretch")
        bare = st.toggle(
            "Bare numbers",
            key="bare numbers",
            persist_state="session",
            help="Plain numbers to copy, without their intervals and nulls.",
        )
    picked = runs_table.run_table(shown, lines, None if bare else noise, stage.theme)
    with buttons:
        one, several = len(picked) == 1, 2 <= len(picked) <= switches.MOST_COMPARED
        diagnose = st.button("Diagnose", type="primary", disabled=not one)
        compare = st.button("Compare", type="primary", disabled=not several)
        if one:
            st.text(picked[0].name)
        elif picked:
            st.text(f"{len(picked)} runs")
        else:
            st.caption("Select a run to see where it errs and for whom, or several to compare.")
    if diagnose:
        st.switch_page("pages/diagnose.py", query_params=address.query_for(run=picked[0].id))
    if compare:
        chosen = address.listed(run.id for run in picked)
        st.switch_page("pages/compare.py", query_params=address.query_for(runs=chosen))
    broken = runs_table.unreadable(shown, lines)
    if broken:
        with st.expander(f"{len(broken)} of these runs cannot be evaluated"):
            st.dataframe(
                [{"run": run.name, "reason": reason} for run, reason in broken],
                hide_index=True,
                alt="Runs that cannot be evaluated, with the reason.",
                column_config={"reason": st.column_config.TextColumn(width="large")},
            )
            # Columns, classes and conversions are said once, for all runs of the experiment.
            link_to_columns(broken[0][0].id, broken[0][0].name)


table()
