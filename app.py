"""The Experiments page: what is there, and what is worth a look."""

from __future__ import annotations

import streamlit as st

from rise_app import loaders, runs_table, switches
from rise_app.address import chosen, linked_page, linked_switch
from rise_app.bootstrap import begin
from rise_app.cards import facts_html, title_html
from rise_app.connection import stop_with
from rise_app.entries import open_page, parents_elsewhere, several_seeds
from rise_app.entry_table import ABOUT_SEEDS, Look, choose_action, entry_table
from rise_app.jobs import Jobs
from rise_app.loaders import Analysis
from rise_app.mapping import link_to_columns
from rise_app.messages import show_error
from rise_core.exceptions import FilterError, RiseError
from rise_core.tracking import Listing

RUNS_A_PAGE = 25
# What a fast store needs; a slower one is drawn line by line.
PATIENCE_SECONDS = 2.0

stage = begin("Experiments")
head = st.container(horizontal=True, vertical_alignment="center")
with head:
    st.html(title_html("Experiments"))
bar = st.container(horizontal=True, vertical_alignment="bottom")
try:
    with bar:
        found = loaders.experiments(stage.store)
        experiment = switches.choose_experiment(found, label="Experiment", width=230)
        known = loaders.listing(stage.store, experiment.id, fresh=False)
        search = switches.choose_search(experiment, known)
    if note := experiment.tags.get("mlflow.note.content"):
        with head, st.popover("About this experiment", icon=":material/info:", type="tertiary"):
            st.text(note)
    if search.text.startswith("models:/"):
        switches.show_run_of_model(stage.store, search.text)
        st.stop()
    group = chosen("seeds") == "on"
    wanted = switches.page_wanted(f"{experiment.id} {search} {group}")

    def read(count: int) -> Listing:
        """List more runs, where there are more."""
        return loaders.listing(stage.store, experiment.id, search, count)

    page = open_page(read, wanted, RUNS_A_PAGE, grouped=group)
    has_seeds = several_seeds(page.listing.runs)
    parents = loaders.run_names(
        stage.store, experiment.id, parents_elsewhere(page.entries), page.listing.runs
    )
except FilterError as error:
    show_error("The server does not understand this filter.", error)
    st.stop()
except RiseError as error:
    stop_with("The experiments cannot be read.", error)

if not page.entries:
    st.info("No run matches. Change the filter, or choose another experiment.")
    st.stop()
# Always there, so that what stands below keeps its place while the page is drawn again.
counted = st.container(horizontal=True, vertical_alignment="center")
if page.pages > 1 or search.text or search.datasets or search.algorithms or search.order.metric:
    with counted:
        st.caption(switches.count_text(page, search))
        if page.pages > 1:
            linked_page(page.pages, "page")
shown = [run for entry in page.entries for run in entry.runs]

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
# A mean has a range, no interval.
noise = {} if group and has_seeds else runs_table.ask_noise(stage.store, shown, analysis)
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
        # Together, so that a narrow screen moves both below the buttons.
        with st.container(horizontal=True, width="content"):
            if has_seeds and group != linked_switch(
                "Group seeds",
                "seeds",
                help="One line for the runs that differ in their seed alone.",
            ):
                st.rerun()
            bare = st.toggle(
                "Bare numbers",
                key="bare numbers",
                persist_state="session",
                help="Plain numbers to copy, without their intervals and nulls.",
            )
    if group and has_seeds:
        st.caption(ABOUT_SEEDS)
    look = Look(stage.theme, bare, search.order.key if search.order.metric else "", parents)
    picked = entry_table(page.entries, lines, noise, look)
    with buttons:
        choose_action(picked, lines)
    broken = runs_table.unreadable(shown, lines)
    if broken:
        with st.expander(
            f"{len(broken)} of these runs cannot be evaluated", expanded=picked is None
        ):
            st.dataframe(
                [{"run": run.name, "reason": reason} for run, reason in broken],
                hide_index=True,
                alt="Runs that cannot be evaluated, with the reason.",
                column_config={"reason": st.column_config.TextColumn(width="large")},
            )
            # Columns, classes and conversions are said once, for all runs of the experiment.
            link_to_columns(broken[0][0].id, broken[0][0].name)


table()
