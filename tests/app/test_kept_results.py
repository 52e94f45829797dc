"""Numbers kept on disk: a server started anew shows them without computing them again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from rise_app import kept_results, runs_table
from rise_app.loaders import ALL_ROWS, Analysis
from rise_core import Settings
from rise_core.tracking import Run, Store, connect
from tests.app.conftest import Shelf, predictions_table


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    made = Shelf(tmp_path)
    made.run("some", "model", predictions_table(1))
    made.run("some", "written", predictions_table(2), status="RUNNING")
    made.run("some", "empty")
    return made


def _start_anew(shelf: Shelf) -> tuple[Store, dict[str, Run]]:
    """Forget all that the process remembers, as another server would."""
    st.cache_resource.clear()
    store = connect(shelf.uri, cache_dir=shelf.folder / "cache")
    return store, {name: store.run(run_id) for name, run_id in shelf.runs.items()}


def _numbers(store: Store, run: Run, analysis: Analysis) -> dict[str, Any]:
    facts = runs_table.ask_facts(store, [run])[run.id].result()
    line = runs_table.ask_lines(store, [run], analysis)[run.id].result()
    noise = runs_table.ask_noise(store, [run], analysis)[run.id].result()
    return {
        "facts": facts,
        "line": line,
        "noise": {name: _comparable(asdict(estimate)) for name, estimate in noise.items()},
    }


def _comparable(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Let nan equal nan."""
    return {
        name: "nan" if isinstance(value, float) and math.isnan(value) else value
        for name, value in fields.items()
    }


def _no_work(*_: Any) -> Any:
    raise AssertionError("computed again")


def test_a_second_visit_computes_nothing(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = Analysis(ALL_ROWS)
    store, runs = _start_anew(shelf)
    first = _numbers(store, runs["model"], analysis)
    assert first["line"].values["w1"] > 0
    assert first["noise"]["w1"]["high"] > 0

    monkeypatch.setattr(runs_table, "_read", _no_work)
    store, runs = _start_anew(shelf)
    assert _numbers(store, runs["model"], analysis) == first


@pytest.mark.parametrize("what", ["settings", "roles", "program"])
def test_other_questions_have_other_answers(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    analysis = Analysis(ALL_ROWS)
    store, runs = _start_anew(shelf)
    first = _numbers(store, runs["model"], analysis)["line"]
    if what == "settings":
        analysis = Analysis(ALL_ROWS, settings=Settings(threshold=0.9))
    if what == "roles":
        roles = store.load(runs["model"]).roles
        store.keep_roles(runs["model"].experiment_id, roles.corrected(pos_label="no"))
    if what == "program":
        monkeypatch.setattr(kept_results, "_program", lambda: "another version")
    asked: list[Run] = []

    def read(store: Store, run: Run) -> Any:
        asked.append(run)
        return plain(store, run)

    plain = runs_table._read
    monkeypatch.setattr(runs_table, "_read", read)
    store, runs = _start_anew(shelf)
    again = _numbers(store, runs["model"], analysis)["line"]
    assert len(asked) >= 2  # line and noise
    assert (again == first) is (what == "program")


def test_what_may_change_or_pass_is_not_kept(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    store, runs = _start_anew(shelf)
    for name in ("written", "empty"):
        _numbers(store, runs[name], Analysis(ALL_ROWS))
    monkeypatch.setattr(runs_table, "_read", _no_work)
    store, runs = _start_anew(shelf)
    for name in ("written", "empty"):
        line = runs_table.ask_lines(store, [runs[name]], Analysis(ALL_ROWS))[runs[name].id]
        assert "AssertionError" in line.result().problem


def test_damaged_results_are_computed_again(shelf: Shelf) -> None:
    store, runs = _start_anew(shelf)
    first = _numbers(store, runs["model"], Analysis(ALL_ROWS))
    results = kept_results._results(store.cache.folder)
    for key in list(_keys(results.file)):
        results.put(key, '{"unknown": 1}')
    store, runs = _start_anew(shelf)
    assert _numbers(store, runs["model"], Analysis(ALL_ROWS)) == first


def _keys(file: Path) -> list[str]:
    import sqlite3

    link = sqlite3.connect(file)
    try:
        return [key for (key,) in link.execute("SELECT key FROM results")]
    finally:
        link.close()
