"""Servers, runs and tables that are not as they should be: a clear message, and the app lives."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import io
import json
import re
import shutil
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import streamlit as st

from rise_app import loaders
from rise_core.columns import Roles
from rise_core.tracking import log_predictions
from tests.app.conftest import Shelf, Truth, predictions_table
from tests.app.reading import Screen, values_of

Open = Callable[..., Screen]
Ask = Callable[[str], Truth]
PAGES = ("Experiments", "Diagnose")


# -------------------------------------------------------------------------------- servers


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def http_server(
    answer: Callable[[http.server.BaseHTTPRequestHandler], None],
) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with contextlib.suppress(OSError):
                answer(self)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.socket.close()


def no_connection(page: Screen) -> str:
    """Hold that the page says it has no connection and offers to try again; the reason."""
    assert "There is no connection to the runs." in page.markdown
    assert page.has("Try again")
    assert not page.at.get("vega_lite_chart")
    # The rest of the app is there: people can go to the other page.
    assert {link.label for link in page.at.page_link} >= set(PAGES)
    return "\n".join(page.texts)


@pytest.mark.parametrize("name", PAGES)
def test_a_server_that_is_down_is_said_in_seconds(name: str, open_app: Open) -> None:
    port = free_port()
    started = time.monotonic()
    reason = no_connection(open_app(name, f"http://127.0.0.1:{port}"))
    assert time.monotonic() - started < 20
    assert str(port) in reason


def test_a_server_that_is_not_mlflow_is_said_and_its_page_not_shown(open_app: Open) -> None:
    body = b"<html><script>alert(1)</script><img src=https://example.org/x.png>" + b"x" * 5000

    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/html")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    with http_server(answer) as url:
        page = open_app("Experiments", url)
    reason = no_connection(page)
    assert "not" in reason
    assert "MLflow" in reason
    assert len(reason) < 700
    assert "<script" not in page.html
    assert "example.org" not in page.markdown


@pytest.mark.parametrize(
    ("status", "body", "remedy"),
    [
        (401, b"no", "MLFLOW_TRACKING_USERNAME"),
        (403, b"Invalid Host header - possible DNS rebinding attack detected", "--allowed-hosts"),
        (403, b"no", "Ask for read permission"),
        (503, b"<html><h1>Down for maintenance</h1></html>", "Try again in a moment"),
        (500, b'{"error_code": "INTERNAL_ERROR", "message": "no such table"}', "Its log says more"),
    ],
)
def test_a_refusal_is_said_with_its_remedy(
    open_app: Open, status: int, body: bytes, remedy: str
) -> None:
    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    with http_server(answer) as url:
        reason = no_connection(open_app("Diagnose", url))
    assert str(status) in reason
    assert remedy in reason


def test_a_slow_server_is_given_up_in_seconds(
    open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would answer after a minute; the first contact may take as long as a person says."""
    monkeypatch.setenv("RISE_TIMEOUT", "1")
    gone = threading.Event()
    with http_server(lambda request: gone.wait(60) and None) as url:
        started = time.monotonic()
        page = open_app("Experiments", url)
        seconds = time.monotonic() - started
        gone.set()
    assert seconds < 10
    reason = no_connection(page)
    assert "did not answer within 1 s" in reason
    assert "RISE_TIMEOUT" in reason


def test_a_database_of_another_version_is_said_and_left_as_it_is(
    open_app: Open, lab: Shelf, tmp_path: Path
) -> None:
    path = tmp_path / "mlflow.db"
    shutil.copyfile(lab.folder / "mlflow.db", path)
    with contextlib.closing(sqlite3.connect(path)) as link, link:
        link.execute("UPDATE alembic_version SET version_num = '451aebb31d03'")
    before = path.read_bytes()
    reason = no_connection(open_app("Experiments", f"sqlite:///{path}"))
    assert "mlflow db upgrade" in reason
    assert path.read_bytes() == before


def test_a_mistyped_database_is_said_and_nothing_created(open_app: Open, tmp_path: Path) -> None:
    path = tmp_path / "no such folder" / "mlflow.db"
    reason = no_connection(open_app("Diagnose", f"sqlite:///{path}"))
    assert str(path) in reason
    assert not path.parent.exists()


def test_a_password_in_the_address_is_not_shown(open_app: Open) -> None:
    page = open_app("Experiments", f"http://ann:sesame@127.0.0.1:{free_port()}")
    no_connection(page)
    assert "sesame" not in "\n".join([*page.texts, page.markdown, page.html])


def test_a_store_without_experiments_that_hold_runs(open_app: Open, lab: Shelf) -> None:
    page = open_app("Experiments", lab.uri, experiment=lab.experiments["Empty"])
    assert any("No run" in info.value for info in page.at.info)
    page.choose("Experiment", lab.experiments["Other"]).settle()
    assert list(page.table["run"]) == ["alone"]


def test_the_page_comes_back_when_the_server_does(
    open_app: Open, lab: Shelf, tmp_path: Path
) -> None:
    """A database that is moved away and back stands for a server that is restarted."""
    away = lab.folder / "away.db"
    database = lab.folder / "mlflow.db"
    page = open_app("Diagnose", lab.uri, run=lab.runs["erm number 0"])
    cards = page.cards
    database.rename(away)
    try:
        st.cache_resource.clear()  # what the clock does to listings after half a minute
        page.run()
        no_connection(page)
        page.run()  # the clock looks again, in vain
        no_connection(page)
    finally:
        away.rename(database)
    page.press("Try again")
    assert page.cards == cards
    assert page.address["run"] == lab.runs["erm number 0"]


def test_a_table_that_is_logged_after_the_run_has_ended_is_seen(
    open_app: Open, tmp_path: Path, truth: Ask
) -> None:
    """And one that is logged again: numbers kept on disk are not those of the old one."""
    shelf = Shelf(tmp_path)
    run_id = shelf.run("Late", "late")
    found = []
    for seed in (None, 3, 4):
        if seed is not None:
            table = predictions_table(seed, 200)
            log_predictions(table["y_true"], table["y_prob"], sensitive_features=table["sex"],
                            run_id=run_id, tracking_uri=shelf.uri)  # fmt: skip
            loaders.forget_lists()  # what the clock does to listings after half a minute
        page = open_app("Experiments", shelf.uri, experiment=shelf.experiments["Late"]).settle()
        found.append(None if seed is None else page.table["accuracy"].tolist())
        if seed is not None:
            page = open_app("Diagnose", shelf.uri, run=run_id)
            assert page.cards == values_of(truth(shelf.uri).evaluation(run_id), page.cards)
    assert found[1] != found[2]


# --------------------------------------------------------------------------------- tables


def _table(**changes: object) -> pd.DataFrame:
    return predictions_table(3, 200).assign(**changes)


def _scores(change: Callable[[np.ndarray], np.ndarray]) -> pd.DataFrame:
    table = predictions_table(3, 200)
    return table.assign(y_prob=change(table["y_prob"].to_numpy().copy()))


def _with_holes(values: np.ndarray) -> np.ndarray:
    values[:7] = np.nan
    return values


def _some_missing(values: pd.Series) -> pd.Series:
    return values.where(np.arange(len(values)) >= 11, None)


BASE = predictions_table(3, 200)
# As a training script would have logged them; a table so odd may leave nothing to guess by.
ROLES = Roles(
    y_true="y_true",
    y_prob="y_prob",
    sensitive_features=("sex", "region"),
    environment="environment",
    pos_label="yes",
)
# What cannot be evaluated: the table, and words that the message must hold.
IMPOSSIBLE: dict[str, tuple[pd.DataFrame | None, tuple[str, ...]]] = {
    "no table": (None, ("log_predictions",)),
    "logits": (
        _scores(lambda p: np.log((p + 0.01) / (1.01 - p)) * 3),
        ("y_prob", "[0, 1]", "logit"),
    ),
    "three labels": (
        _table(y_true=np.resize(["a", "b", "c"], 200)),
        ("3 distinct values", "needs 2"),
    ),
    "ambiguous labels": (
        _table(y_true=np.resize(["apple", "pear"], 200)),
        ("apple", "pear"),
    ),
    "empty": (BASE.iloc[:0], ("empty",)),
    "nothing to compare": (
        BASE[["y_true", "y_prob"]].assign(sex="female"),
        ("sensitive feature", "between 2 and 20"),
    ),
    "no scores at all": (_table(y_prob=np.full(200, np.nan)), ("missing",)),
}
# What can: the table, and what must be said of it.
POSSIBLE: dict[str, pd.DataFrame] = {
    "missing scores": _scores(_with_holes),
    "missing group": BASE.assign(sex=_some_missing(BASE["sex"])),
    "one group": _table(sex="female"),
    "group of two": _table(sex=np.where(np.arange(200) < 2, "rare", "usual")),
    "equal scores": _table(y_prob=0.5),
    "one class": _table(y_true="yes"),
    "two rows": BASE.iloc[:2],
    "one row": BASE.iloc[:1],
}
COLUMN = "![c](https://example.org/column.png)"
HOSTILE = {
    "![pic](https://example.org/a.png)": "![g](https://example.org/group.png)",
    "<script>alert(1)</script><img src=x onerror=alert(2)>": "<b onclick=alert(3)>bold</b>",
    "very long " + "name " * 80: "long group " + "label " * 60,
    "🤖 emoji :material/home: :red[x] $x^2$": "👩🏽‍🔬 :smile:",
    "نموذج من اليمين إلى اليسار": "مجموعة",
}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    shelf = Shelf(tmp_path_factory.mktemp("faulty"))
    for name, (table, _) in IMPOSSIBLE.items():
        guessed = name in ("ambiguous labels", "nothing to compare")
        shelf.run("Faulty", name, table, roles=None if guessed else ROLES)
    for name, table in POSSIBLE.items():
        shelf.run("Odd", name, table, roles=ROLES)
    for name, group in HOSTILE.items():
        table = _table(sex=np.where(BASE["sex"] == "female", group, "other"))
        table = table.rename(columns={"region": COLUMN})
        shelf.run(f"Hostile {name}"[:200], name, table, algorithm=name, dataset=name, note=name)
    shelf.run("Good", "good", BASE)
    return shelf


# ---------------------------------------------------------------------------------- files


def _parquet(**columns: object) -> bytes:
    whole: dict[str, object] = {name: pa.array(BASE[name]) for name in BASE.columns}
    body = io.BytesIO()
    pq.write_table(pa.table(whole | columns), body)
    return body.getvalue()


def _twice(name: str) -> bytes:
    table = pa.table({column: pa.array(BASE[column]) for column in BASE.columns})
    body = io.BytesIO()
    pq.write_table(table.append_column(name, table.column(name)), body)
    return body.getvalue()


def _json(labels: list[object]) -> bytes:
    return json.dumps(BASE.assign(y_true=pd.Series(labels, dtype=object)).to_dict("list")).encode()


SHORT = BASE.to_csv(index=False).encode()
TEN_THOUSAND = pd.DataFrame(
    {"y_true": [0, 1] * 5000, "y_prob": [0.25, 0.75] * 5000, "sex": [f"g{k}" for k in range(10000)]}
)
# Files as they come: name, content, and words of what must be said; none where they can be read.
FILES: dict[str, tuple[str, bytes, tuple[str, ...]]] = {
    "damaged parquet": ("p.parquet", _parquet()[:-300] + b"\xff" * 292 + b"PAR1", ("damaged",)),
    "half a parquet": ("p.parquet", _parquet()[:2000], ("damaged",)),
    "half a gzip": ("p.csv.gz", gzip.compress(SHORT)[:500], ("cannot be unpacked",)),
    "login page": ("p.csv", b"<!DOCTYPE html><script>alert(1)</script>", ("web page",)),
    "scores as text": ("p.parquet", _parquet(y_prob=BASE["y_prob"].astype(str)), ("holds texts",)),
    "no rows": ("p.csv", SHORT.split(b"\n")[0] + b"\n", ("empty",)),
    "ten thousand groups": ("p.csv", TEN_THOUSAND.to_csv().encode(), ("more than 20",)),
    "a column without a name": ("p.parquet", _parquet(**{"": pa.array(BASE["sex"])}), ()),
    "a column given twice": ("p.parquet", _twice("sex"), ()),
    "a hundred columns": (
        "p.parquet", _parquet(**{f"x{k}": pa.array(BASE["y_prob"]) for k in range(100)}), (),
    ),
    "labels 1 and '1'": ("p.json", _json([0, 1, "0", "1"] * 50), ()),
    "moments as groups": (
        "p.parquet",
        _parquet(sex=pa.array([k % 2 for k in range(200)], pa.timestamp("s", "Europe/Berlin"))),
        (),
    ),
    "decimals and bytes": (
        "p.parquet",
        _parquet(
            y_prob=pa.array([Decimal(str(p)) for p in BASE["y_prob"]], pa.decimal128(9, 6)),
            sex=pa.array([value.encode() for value in BASE["sex"]]),
        ),
        (),
    ),
    "nested columns": (
        "p.parquet", _parquet(info=pa.array([{"a": [{"b": 1}]}] * 200)), (),
    ),
    "a name of all kinds 100% 予測.csv": ("my preds 100% 予測.csv", SHORT, ()),
}  # fmt: skip


@pytest.fixture(scope="module")
def filed(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    shelf = Shelf(tmp_path_factory.mktemp("filed"))
    for name, (file, content, _) in FILES.items():
        (shelf.folder / file).write_bytes(content)
        shelf.client.log_artifact(shelf.run("Files", name), str(shelf.folder / file))
    outside = json.dumps([{"path": "../../../outside.csv", "type": "table"}])
    shelf.run("Files", "a way out", None, **{"mlflow.loggedArtifacts": outside})
    shelf.run("Files", "moved away", BASE)
    shutil.rmtree(shelf.client.get_run(shelf.runs["moved away"]).info.artifact_uri.split(":")[-1])
    shelf.run("Files", "deleted", BASE)
    shelf.client.delete_run(shelf.runs["deleted"])
    shelf.run("Good", "good", BASE)
    return shelf


UNREADABLE = {name: words for name, (_, _, words) in FILES.items() if words} | {
    "a way out": ("not safe",),
    "moved away": ("is not on this machine",),
    "deleted": ("has been deleted", "mlflow runs restore"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_cannot_be_read_is_said(name: str, open_app: Open, filed: Shelf) -> None:
    page = open_app("Diagnose", filed.uri, run=filed.runs[name])
    said = "\n".join(page.texts)
    for words in UNREADABLE[name]:
        assert words in said
    assert not page.at.get("vega_lite_chart")
    page.choose("Data set", filed.experiments["Good"])
    assert page.facts["rows used"] == "200 of 200"


@pytest.mark.parametrize("name", [name for name, (_, _, words) in FILES.items() if not words])
def test_a_file_of_odd_content_is_shown(
    name: str, open_app: Open, filed: Shelf, truth: Ask
) -> None:
    page = open_app("Diagnose", filed.uri, run=filed.runs[name])
    assert page.facts["rows used"] == "200 of 200"
    assert page.cards == values_of(truth(filed.uri).evaluation(filed.runs[name]), page.cards)
    assert len(page.curves)


def test_a_list_of_files_that_cannot_be_read(open_app: Open, filed: Shelf) -> None:
    page = open_app("Experiments", filed.uri, experiment=filed.experiments["Files"]).settle()
    (broken,) = [d.value for d in page.at.dataframe if "reason" in d.value.columns]
    reasons = broken.set_index("run")["reason"]
    for name, wanted in UNREADABLE.items():
        assert (name in reasons.index) is (name != "deleted")
        for words in wanted if name != "deleted" else ():
            assert words in reasons[name]


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_run_that_cannot_be_evaluated_says_what_was_found(
    name: str, open_app: Open, faulty: Shelf
) -> None:
    page = open_app("Diagnose", faulty.uri, run=faulty.runs[name])
    # A question has its answers on buttons.
    said = "\n".join([*page.texts, *(button.label for button in page.at.button)])
    for words in IMPOSSIBLE[name][1]:
        assert words in said
    assert not page.at.get("vega_lite_chart")
    # The rest of the page lives: another run is one choice away.
    page.choose("Data set", faulty.experiments["Good"])
    assert page.facts["rows used"] == "200 of 200"


def test_the_list_names_them_all_with_their_reasons(open_app: Open, faulty: Shelf) -> None:
    page = open_app("Experiments", faulty.uri, experiment=faulty.experiments["Faulty"]).settle()
    (broken,) = [d.value for d in page.at.dataframe if "reason" in d.value.columns]
    reasons = broken.set_index("run")["reason"]
    assert set(reasons.index) == set(IMPOSSIBLE)
    for name, (_, wanted) in IMPOSSIBLE.items():
        for words in wanted:
            assert words in reasons[name]


@pytest.mark.parametrize("name", POSSIBLE)
@pytest.mark.parametrize("view", ["groups", "global"])
def test_odd_tables_are_shown_with_every_row_accounted_for(
    name: str, view: str, open_app: Open, faulty: Shelf, truth: Ask
) -> None:
    page = open_app("Diagnose", faulty.uri, run=faulty.runs[name], view=view)
    ev = truth(faulty.uri).evaluation(faulty.runs[name])
    assert page.cards == values_of(ev, page.cards)
    rows = len(POSSIBLE[name])
    facts = page.facts
    assert facts["rows used"] == f"{ev.n:,} of {rows:,}"
    left_out = sum(map(int, re.findall(r"(\d+) \(", facts["left out"])))
    assert ev.n + left_out == rows
    assert len(page.pieces if view == "global" else page.curves)
    page.choose("Base rates", "equal")
    page.choose("Residual", "decision_gap")


def test_missing_scores_are_counted_and_named(open_app: Open, faulty: Shelf) -> None:
    page = open_app("Diagnose", faulty.uri, run=faulty.runs["missing scores"])
    assert page.facts["rows used"] == "193 of 200"
    assert page.facts["left out"] == "7 (the score is missing)"


def test_a_missing_group_is_a_group_of_its_own(open_app: Open, faulty: Shelf) -> None:
    page = open_app("Diagnose", faulty.uri, run=faulty.runs["missing group"])
    assert "(missing) (n = 11)" in page.facts["groups"]
    assert "(missing)" in set(page.curves["curve"])
    assert page.facts["rows used"] == "200 of 200"


def test_one_group_has_no_gap_and_says_why(open_app: Open, faulty: Shelf) -> None:
    page = open_app("Diagnose", faulty.uri, run=faulty.runs["one group"])
    assert {page.cards[key] for key in ("dp", "md", "f_mean", "f_shift", "f_acc", "w1")} == {"–"}
    assert page.cards["accuracy"] != "–"
    assert "one group" in page.html


def test_odd_tables_are_listed(open_app: Open, faulty: Shelf) -> None:
    page = open_app("Experiments", faulty.uri, experiment=faulty.experiments["Odd"]).settle()
    assert set(page.table["run"]) == set(POSSIBLE)


@pytest.mark.parametrize("name", HOSTILE, ids=["markdown", "html", "long", "emoji", "arabic"])
def test_hostile_names_are_text(name: str, open_app: Open, faulty: Shelf) -> None:
    experiment = faulty.experiments[f"Hostile {name}"[:200]]
    page = open_app("Experiments", faulty.uri, experiment=experiment).settle()
    assert len(page.table) == 1
    inert(page, name)
    page = open_app("Diagnose", faulty.uri, run=faulty.runs[name])
    assert HOSTILE[name] in set(page.curves["curve"])
    assert page.cards
    inert(page, name)
    page.choose("Colour by", COLUMN)
    inert(page, name)
    page.choose("Colour by", "sex")
    page.choose("Protected attribute", COLUMN)
    page.choose("View", "global")
    inert(page, name)


def inert(page: Screen, name: str) -> None:
    """Hold that no name from outside came into Markdown or, unescaped, into HTML."""
    # Labels and helps of widgets are Markdown as well.
    kinds = ("selectbox", "segmented_control", "slider", "multiselect", "button", "toggle")
    widgets = [w for kind in kinds for w in getattr(page.at, kind)]
    helps = [f"{w.label} {w.proto.help}" for w in widgets]
    buttons = [str(option) for w in page.at.segmented_control for option in w.options]
    labels = [part.label for part in (*page.at.expander, *page.at.tabs, *page.at.page_link)]
    markdown = "\n".join([page.markdown, *helps, *buttons, *labels])
    for text in (name, HOSTILE[name]):
        assert text not in markdown
    assert "example.org" not in markdown
    shown = page.html
    for dangerous in ("<script", "onerror=alert(2)>", "<b onclick"):
        assert dangerous not in shown
