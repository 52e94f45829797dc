"""The files of a session, side by side: models that are in no store yet."""

from __future__ import annotations

from functools import partial

import streamlit as st

from rise_app import questions, uploads
from rise_app.compare_views import show_comparison
from rise_app.messages import told_apart
from rise_app.picks import Answer, answers
from rise_app.switches import MOST_COMPARED
from rise_app.uploads import Upload
from rise_core import Settings
from rise_core.charts.theme import ThemeName
from rise_core.exceptions import ColumnError

__all__ = ["show_files_compared"]


def show_files_compared(
    environment: str, attribute: str | None, settings: Settings, theme: ThemeName
) -> None:
    """Compare the files of this session under the same switches; one that cannot is left out."""

    def answer(upload: Upload) -> Answer:
        if questions.is_open(upload.table, upload.roles, hard=True):
            raise ColumnError("Something must be said of its columns first: choose it under File.")
        question = uploads.question_of(upload, environment, attribute, settings)
        return question, uploads.evaluation(question, uploads.check(upload).predictions)

    files = {upload.id: upload for upload in uploads.files()[-MOST_COMPARED:]}
    names = told_apart({key: upload.table.path for key, upload in files.items()})
    asked, models = answers({names[key]: partial(answer, files[key]) for key in files})
    if len(models) < 2:
        st.info("Fewer than two files can be evaluated with these switches.")
        return
    references = {names[key]: uploads.reference_of(files[key]) for key in files}
    show_comparison(
        f"{len(models)} files",
        asked,
        models,
        theme,
        {name: references[name] for name in models},
        {name: name for name in models},
    )
