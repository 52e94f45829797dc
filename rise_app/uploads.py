"""Files that people add: kept for their session, read like a run's table, never sent anywhere."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from rise_app import loaders
from rise_app.address import chosen, linked, remember
from rise_app.connection import store_uri
from rise_app.export import show_evaluation_export
from rise_app.loaders import Question
from rise_app.mapping import edit_roles, show_reasons
from rise_app.messages import as_text, show_error
from rise_app.servers import Server, chosen_server, query_of
from rise_core import Evaluation, Predictions
from rise_core.columns import Roles
from rise_core.exceptions import RiseError
from rise_core.report import RunReference
from rise_core.synthetic import SyntheticModel
from rise_core.tracking import Table
from rise_core.tracking.new_run import log_new_run
from rise_core.tracking.sources import read_file

__all__ = [
    "Checked",
    "Upload",
    "add_files",
    "answer",
    "check",
    "choose_upload",
    "evaluation",
    "files",
    "question_of",
    "reference_of",
    "show_columns",
    "show_logging",
    "show_preview",
    "show_save",
    "show_what_is_needed",
]

_TYPES = ["csv", "tsv", "gz", "parquet", "json", "jsonl", "ndjson"]
_FILES, _FAULTS, _ROUND, _LOGGED = "added files", "files not added", "adding round", "logged files"
_PREVIEW = 100
_ID = 8


@dataclass(frozen=True)
class Upload:
    """A file as it was read, and what a person has said about it.

    Attributes
    ----------
    table : rows, with the roles that were found in it
    roles : the roles in use
    """

    table: Table
    roles: Roles

    @property
    def id(self) -> str:
        """Name in the address: the beginning of the content's digest."""
        return self.table.key[:_ID]


@dataclass(frozen=True)
class Checked:
    """Rows that can be evaluated, and remarks."""

    predictions: Predictions
    notes: tuple[str, ...]


def _kept() -> dict[str, Upload]:
    return st.session_state.setdefault(_FILES, {})


def files() -> list[Upload]:
    """Return the files of this session, in the order they were added."""
    return list(_kept().values())


def _keep(upload: Upload) -> None:
    _kept()[upload.id] = upload


def _forget(upload_id: str) -> None:
    _kept().pop(upload_id, None)
    remember("file", None)


# ------------------------------------------------------------------------------------ adding


def add_files() -> None:
    """Draw the place where files are dropped, and read what comes; faults are shown under it."""
    some = bool(_kept())
    with st.expander("Add a file", icon=":material/upload_file:", expanded=not some):
        # A new key empties it: what it would still hold is in the list of files by then.
        files = st.file_uploader(
            "CSV, parquet or JSON, also gzipped",
            type=_TYPES,
            accept_multiple_files=True,
            key=f"uploader {st.session_state.setdefault(_ROUND, 0)}",
        )
    if files:
        with st.spinner("Reading …"):
            st.session_state[_FAULTS] = _take_in(files)
        st.session_state[_ROUND] += 1
        st.rerun()
    for name, fault in st.session_state.get(_FAULTS, ()):
        show_error("This file was not added.", fault if name in fault else f"{name}: {fault}")


def _take_in(files: Sequence[Any]) -> list[tuple[str, str]]:
    """Read files and keep them; what could not be read, with the reason."""
    faults = []
    for file in files:
        try:
            upload = _read(file.name, file.getvalue())
        except RiseError as error:
            faults.append((file.name, str(error)))
        else:
            _keep(_kept().get(upload.id, upload))  # the same rows again keep their roles
            remember("file", upload.id)
    return faults


def _read(name: str, content: bytes) -> Upload:
    # In a folder of its own, so that it can keep its name: messages say it, endings matter.
    with tempfile.TemporaryDirectory(prefix="rise-") as folder:
        path = Path(folder) / (Path(name.replace("\\", "/")).name or "file")
        path.write_bytes(content)
        table = replace(read_file(path), path=path.name)
    return Upload(table, table.roles)


def choose_upload() -> Upload | None:
    """Choose among the files of this session; None when there is none."""
    kept = _kept()
    wanted = chosen("file")
    if wanted is not None and wanted not in kept:
        remember("file", None)
        st.text(
            "The file of this address is not here: a file is kept for the session in which it was "
            "added. Add it again."
        )
    if not kept:
        return None
    picked = linked(
        st.selectbox,
        "File",
        list(kept),
        "file",
        default=next(reversed(kept)),
        format_func=lambda key: kept[key].table.path,
        sticky=True,
    )
    return kept[picked]


def show_what_is_needed() -> None:
    """Say what a file must hold, with one to try."""
    st.text(
        "One row a prediction. Columns: the label, the score of the positive class, and at least "
        "one that splits the rows into groups; optionally environment, weight and row id. Names "
        "are free: RISE says which column it takes for what, and you can correct it."
    )
    st.text("The file is read on this machine, kept for this session, and sent nowhere.")
    st.download_button(
        "A file to try (synthetic)",
        lambda: SyntheticModel(bias=-1.5, rows=1000).frame().to_csv(index=False),
        file_name="synthetic-predictions.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
    )


# ---------------------------------------------------------------------------------- checking


def answer(upload: Upload, roles: Roles) -> None:
    """Keep what a person has said of a file."""
    _keep(replace(upload, roles=roles))


def check(upload: Upload) -> Checked:
    """Check the rows under the roles in use; raises RiseError. Computed once a session."""
    return _checked(upload.table.key, repr(upload.roles.to_dict()), upload)


# For the session alone: what one person adds is nobody else's to keep.
@st.cache_resource(scope="session", max_entries=8, show_spinner=False)
def _checked(key: str, roles: str, _upload: Upload) -> Checked:
    found = Predictions.from_frame(_upload.table.frame, _upload.roles)
    return Checked(found, (*_upload.table.notes, *found.notes))


def question_of(upload: Upload, environment: str, attribute: str | None, settings: Any) -> Question:
    """Name an evaluation of a file for the caches."""
    roles = repr(upload.roles.to_dict())
    return Question(f"file {upload.table.key}", roles, environment, attribute, settings)


@st.cache_resource(scope="session", max_entries=16, show_spinner=False, hash_funcs={Question: repr})
def evaluation(question: Question, _predictions: Predictions) -> Evaluation:
    """Evaluate once a session; raises RiseError."""
    return loaders.answer(question, _predictions)


# ----------------------------------------------------------------------------------- showing


def show_preview(upload: Upload) -> None:
    """Show the first rows as they came."""
    frame = upload.table.frame
    st.caption(f"First {min(len(frame), _PREVIEW)} of {len(frame):,} rows, as they came")
    st.dataframe(frame.head(_PREVIEW), hide_index=True, height=280, alt="First rows of the file.")


def show_columns(upload: Upload) -> None:
    """Show which column is what and why, and let it be corrected."""
    show_reasons(upload.roles)
    _edit(upload)
    st.button("Forget this file", icon=":material/delete:", on_click=_forget, args=(upload.id,))


@st.fragment
def _edit(upload: Upload) -> None:
    edited = edit_roles(upload.table, upload.roles)
    with st.container(horizontal=True):
        use = st.button("Use these columns", type="primary")
        back = st.button("Back to what was found", disabled=upload.roles == upload.table.roles)
    if use and edited is not None:
        answer(upload, edited)
        st.rerun()
    if back:
        answer(upload, upload.table.roles)
        st.rerun()


def show_save(upload: Upload, ev: Evaluation, verdict: Any, title: str, draw: Any) -> None:
    """Hand over indicators, report and picture."""
    if verdict.done():
        known = verdict.result()[0]
        st.download_button(
            "Indicators (CSV)",
            lambda: known.to_frame().to_csv(index=False),
            file_name=f"rise {Path(upload.table.path).stem}.csv",
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
        )
    show_evaluation_export(ev, verdict, title, reference_of(upload), draw)


def reference_of(upload: Upload) -> RunReference:
    """Return what a report says of a file: its digest, and how its columns were read."""
    return RunReference(
        f"sha256 {upload.table.key[:16]}",
        upload.table.path,
        table=upload.table.path,
        mapping=upload.roles.to_dict(),
        facts={"source": "a file that was added, no run"},
    )


def show_logging(upload: Upload, predictions: Predictions) -> None:
    """Offer to log the rows as a run, at the server that is chosen; it says which."""
    stem = upload.table.path.split(".", 1)[0]
    try:
        server = chosen_server()
    except RiseError as error:
        show_error("There is no place to log it.", error)
        return
    with st.form(f"log {upload.id}", border=False):
        experiment = st.text_input("Experiment", value=stem, help="Made where there is none.")
        name = st.text_input("Run name", value=stem)
        algorithm = st.text_input("Algorithm", help="Kept as a tag; the run's name where empty.")
        sure = st.checkbox(f"Yes, write these rows to {as_text(server.label)}")
        if st.form_submit_button("Log as a run", type="primary"):
            _log(upload, predictions, server, experiment, name, algorithm, sure)
    logged = st.session_state.get(_LOGGED, {}).get((server.name, upload.id))
    if logged is not None:
        st.text(f"Logged as run {logged.run_id}.")
        st.page_link(
            "pages/diagnose.py",
            label="Look at the run",
            icon=":material/show_chart:",
            query_params=query_of(server)
            | {"experiment": logged.experiment_id, "run": logged.run_id},
        )


def _log(
    upload: Upload,
    predictions: Predictions,
    server: Server,
    experiment: str,
    name: str,
    algorithm: str,
    sure: bool,
) -> None:
    if not sure:
        show_error("Nothing was written.", "Tick the box first: it says where the rows go.")
        return
    tags = {"dataset": experiment, "source": f"file {upload.table.path}"}
    if algorithm.strip():
        tags["algorithm"] = algorithm.strip()
    try:
        with st.spinner("Logging …"):
            logged = log_new_run(
                predictions,
                tracking_uri=store_uri(server),
                experiment=experiment,
                run_name=name,
                tags=tags,
            )
    except RiseError as error:
        show_error("The run was not logged.", error)
        return
    st.session_state.setdefault(_LOGGED, {})[server.name, upload.id] = logged
    loaders.forget_lists()
