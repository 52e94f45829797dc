"""The files of a session, side by side: models that are in no store yet."""

from __future__ import annotations

from collections import Counter

import streamlit as st

from rise_app import questions, uploads
from rise_app.compare_views import show_comparison
from rise_app.loaders import Question
from rise_app.messages import as_text, show_error
from rise_app.switches import MOST_COMPARED
from rise_app.uploads import Upload
from rise_core import Evaluation, Settings
from rise_core.charts.theme import ThemeName
from rise_core.exceptions import ColumnError, RiseError
from rise_core.report import RunReference

__all__ = ["show_files_compared"]


def show_files_compared(
    environment: str, attribute: str | None, settings: Settings, theme: ThemeName
) -> None:
    """Compare the files of this session under the same switches; one that cannot is left out."""
    files = uploads.files()[-MOST_COMPARED:]
    asked: dict[str, Question] = {}
    models: dict[str, Evaluation] = {}
    references: dict[str, RunReference] = {}
    for name, upload in zip(_names(files), files, strict=True):
        try:
            question = _question(upload, environment, attribute, settings)
            ev = uploads.evaluation(question, uploads.check(upload).predictions)
        except RiseError as error:
            show_error(f"{as_text(name)} is left out.", error)
            continue
        asked[name], models[name] = question, ev
        references[name] = uploads.reference_of(upload)
    if len(models) < 2:
        st.info("Fewer than two files can be evaluated with these switches.")
        return
    show_comparison(
        f"{len(models)} files", asked, models, theme, references, {name: name for name in models}
    )


def _question(
    upload: Upload, environment: str, attribute: str | None, settings: Settings
) -> Question:
    if questions.is_open(upload.table, upload.roles, hard=True):
        raise ColumnError("Something must be said of its columns first: choose it under File.")
    return uploads.question_of(upload, environment, attribute, settings)


def _names(files: list[Upload]) -> list[str]:
    """Return what files are called: no two alike."""
    times = Counter(upload.table.path for upload in files)
    return [
        upload.table.path if times[upload.table.path] == 1 else f"{upload.table.path} ({upload.id})"
        for upload in files
    ]
