"""Long lists of runs on a real store: filtered, ordered and cut by the server."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rise_core.exceptions import FilterError, NestedTablesError, UnreadableTableError
from rise_core.tracking import Listing, Order, Run, Search, Store, connect
from rise_core.tracking.listing import find_sources, nested
from rise_core.tracking.search import Sources


def searched(store: Store, experiment: str, search: Search, chunk: int = 3) -> list[Run]:
    """List all that a search finds, as the app does: the newest runs are known, and no more."""
    known = Listing(store, experiment, Search(), Sources(), chunk=chunk)
    known.reach(1)
    sources = {
        what: find_sources(store, experiment, what, known.runs, complete=known.complete)
        for what in search.depends_on
    }
    return list(Listing(store, experiment, search, Sources(**sources), chunk=chunk).reach(10_000))


def names(runs: Any) -> list[str]:
    return [run.name for run in runs]


@pytest.fixture
def seven(workspace) -> Any:
    """Seven runs, the last made is the newest; some lack the metric, one has no number."""
    for k in range(7):
        run_id = make(workspace, f"run {k}", k)
        if k not in (2, 5):
            value = math.nan if k == 4 else (0.1, 0.9, 0.0, 0.4, 0.0, 0.0, 0.6)[k]
            workspace.client.log_metric(run_id, "auc", value)
    return workspace


def make(workspace, name: str, when: int, params=(), **tags: str) -> str:
    made = workspace.client.create_run(
        workspace.experiment_id,
        run_name=name,
        tags=tags,
        start_time=1_790_000_000_000 + 1000 * when,
    )
    run_id = str(made.info.run_id)
    for key, value in dict(params).items():
        workspace.client.log_param(run_id, key, value)
    return run_id


def test_a_list_grows_by_chunks_as_somebody_reads_on(seven) -> None:
    listing = Listing(connect(seven.uri), seven.experiment_id, Search(), Sources(), chunk=3)
    assert (names(listing.runs), listing.complete) == ([], False)
    assert names(listing.reach(1)) == ["run 6", "run 5", "run 4"]
    assert listing.in_first_chunk
    assert names(listing.reach(4)) == ["run 6", "run 5", "run 4", "run 3", "run 2", "run 1"]
    assert not listing.complete
    assert not listing.in_first_chunk
    assert names(listing.reach(99))[-1] == "run 0"
    assert listing.complete
    assert len(listing.runs) == 7


def test_one_request_a_chunk_and_none_for_what_is_known(on_server, proxy) -> None:
    for k in range(5):
        make(on_server, f"run {k}", k, dataset="ab"[k % 2], algorithm="ERM")
    store = connect(proxy.url)
    proxy.requests.clear()
    listing = Listing(store, on_server.experiment_id, Search(), Sources(), chunk=2)
    for count in (1, 1, 2):
        listing.reach(count)
    assert len(proxy.requests) == 1
    listing.reach(3)
    assert len(proxy.requests) == 2
    # Two data sets and one place where they stand: two requests, each with one chunk.
    search = Search(datasets=("a", "b"))
    both = Listing(store, on_server.experiment_id, search, Sources(("tags.`dataset`",)), chunk=3)
    proxy.requests.clear()
    assert names(both.reach(1)) == [f"run {k}" for k in (4, 3, 2, 1, 0)]
    assert len(proxy.requests) == 2
    assert all("runs/search" in request for request in proxy.requests)
    # Where every run has the tag, one look tells that no other place need be asked.
    proxy.requests.clear()
    found = find_sources(
        store, on_server.experiment_id, "dataset", listing.runs[:2], complete=False
    )
    assert found == ("tags.`dataset`",)
    assert len(proxy.requests) == 1


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        ("newest", [6, 5, 4, 3, 2, 1, 0]),
        ("oldest", [0, 1, 2, 3, 4, 5, 6]),
        ("name", [0, 1, 2, 3, 4, 5, 6]),
        ("auc desc", [1, 6, 3, 0, 4, 5, 2]),  # no number, then no metric; newest first
        ("auc asc", [0, 3, 6, 1, 4, 5, 2]),
        ("loss asc", [6, 5, 4, 3, 2, 1, 0]),  # nobody has it
    ],
)
def test_the_server_orders(seven, order, wanted) -> None:
    search = Search(order=Order.parse(order))
    found = searched(connect(seven.uri), seven.experiment_id, search)
    assert names(found) == [f"run {k}" for k in wanted]
    # What is merged from several filters stands in the same order.
    assert found == sorted(found, key=search.order.rank)


@pytest.fixture
def mixed(workspace) -> tuple[Store, tuple[Run, ...]]:
    """Runs that say data set and algorithm in every way; the newest say it by tags."""
    from mlflow.entities import Dataset, DatasetInput

    for k in range(3):
        make(workspace, f"new {k}", 100 + k, dataset="crash", algorithm="ERM")
    make(workspace, "by tag", 9, dataset="adult", algorithm="IRM")
    make(workspace, "by param", 8, {"dataset": "adult", "algorithm": "IRM"})
    make(workspace, "by another tag", 7, data_name="adult", model_type="IRM")
    make(workspace, "by another param", 6, {"data": "adult", "estimator_name": "IRM"})
    make(workspace, "IRM", 5)
    logged = make(workspace, "by its input", 4)
    data = DatasetInput(Dataset("adult", "1", "local", "{}"))
    workspace.client.log_inputs(logged, [data])
    # A tag counts before a parameter, and either before name and input.
    make(workspace, "IRM", 3, {"dataset": "adult"}, dataset="other", algorithm="CORAL")
    make(workspace, "quoted", 2, dataset='it\'s "x"', algorithm="Ä 100%")
    make(workspace, "erm of adult", 1, {"dataset": "Adult"})
    store = connect(workspace.uri)
    return store, store.runs(workspace.experiment_id).runs


@pytest.mark.parametrize(
    "search",
    [
        Search(datasets=("adult",)),
        Search(datasets=("adult", "crash")),
        Search(algorithms=("IRM",)),
        Search(algorithms=("ERM", "CORAL")),
        Search(datasets=("adult",), algorithms=("IRM",)),
        Search(datasets=('it\'s "x"',)),
        Search(algorithms=("Ä 100%",)),
        Search("irm"),
        Search("ä 100%"),
        Search("by tag"),
        Search("dataset=ADULT"),
        Search("dataset= algorithm=irm"),
        Search("nothing"),
        Search(datasets=("nothing",)),
        Search("irm", datasets=("adult",), order=Order.parse("name")),
    ],
    ids=str,
)
def test_the_server_finds_the_same_runs_wherever_they_say_it(mixed, search) -> None:
    store, runs = mixed
    assert len(runs) == 12
    wanted = sorted(filter(search.test(), runs), key=search.order.rank)
    found = searched(store, runs[0].experiment_id, search)
    assert [run.id for run in found] == [run.id for run in wanted]
    assert bool(found) == ("nothing" not in str(search))


def test_an_older_server_that_knows_no_is_null(mixed, monkeypatch) -> None:
    store, runs = mixed
    ask = store.client.search_runs

    def refuse(*arguments: Any, **named: Any) -> Any:
        from mlflow.exceptions import MlflowException
        from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE

        if "IS NULL" in named["filter_string"]:
            raise MlflowException("Invalid clause(s)", INVALID_PARAMETER_VALUE)
        return ask(*arguments, **named)

    monkeypatch.setattr(store.client, "search_runs", refuse)
    found = searched(store, runs[0].experiment_id, Search(datasets=("adult",)))
    assert {run.id for run in found} == {run.id for run in runs if run.dataset == "adult"}


def test_words_in_names(workspace) -> None:
    for k, name in enumerate(("Ärger 100%", "a_b", "axb", "c:\\new", "it's", 'say "x"')):
        make(workspace, name, k)
    store = connect(workspace.uri)
    for text, wanted in (
        ("ärger", ["Ärger 100%"]),
        ("A_B", ["a_b"]),
        ("0%", ["Ärger 100%"]),
        ("C:\\new", ["c:\\new"]),
        ("it's", ["it's"]),
        ('"x', ['say "x"']),
        ("a b", ["a_b", "axb"]),
    ):
        found = searched(store, workspace.experiment_id, Search(text))
        assert sorted(names(found)) == wanted, text


def test_a_run_is_found_by_its_id_and_by_its_status(workspace) -> None:
    store = connect(workspace.uri)
    wanted = workspace.run("failed", "FAILED")
    workspace.run("finished")
    for text in (wanted, wanted[:8], "status=failed", "attributes.status = 'FAILED'"):
        assert names(searched(store, workspace.experiment_id, Search(text))) == ["failed"], text


def test_deleted_runs_are_left_out(seven) -> None:
    store = connect(seven.uri)
    gone = searched(store, seven.experiment_id, Search("run 3"))
    seven.client.delete_run(gone[0].id)
    assert searched(store, seven.experiment_id, Search("run 3")) == []
    assert len(searched(store, seven.experiment_id, Search())) == 6


def test_a_run_that_is_logged_meanwhile_makes_none_appear_twice(seven) -> None:
    listing = Listing(connect(seven.uri), seven.experiment_id, Search(), Sources(), chunk=3)
    listing.reach(1)
    make(seven, "late", 99)  # all others move down by one
    assert names(listing.reach(99)) == [f"run {k}" for k in range(6, -1, -1)]


def test_a_malformed_filter_says_what_is_wrong_with_it_and_how_one_looks(workspace) -> None:
    store = connect(workspace.uri)
    for text, reason in (
        ("metrics.auc > high", "numeric"),
        ("metrics.auc >", "Invalid clause"),
        ("tags.team = x", "quoted"),
        ("tags.a = 'x' or tags.b = 'y'", "'or'"),
    ):
        listing = Listing(store, workspace.experiment_id, Search(text), Sources())
        with pytest.raises(FilterError, match=rf"(?s){reason}.*looks like: metrics.auc > 0.8"):
            listing.reach(1)


def test_nested_runs_follow_their_parent_where_both_came(on_sqlite) -> None:
    first = make(on_sqlite, "first", 1)
    make(on_sqlite, "child a", 2, **{"mlflow.parentRunId": first})
    middle = make(on_sqlite, "child b", 3, **{"mlflow.parentRunId": first})
    make(on_sqlite, "grandchild", 4, **{"mlflow.parentRunId": middle})
    make(on_sqlite, "alone", 5)
    store = connect(on_sqlite.uri)
    listing = Listing(store, on_sqlite.experiment_id, Search(), Sources())
    assert names(listing.reach(9)) == ["alone", "first", "child b", "grandchild", "child a"]
    # In another chunk they stand where their time puts them.
    apart = Listing(store, on_sqlite.experiment_id, Search(), Sources(), chunk=2)
    assert names(apart.reach(9)) == ["alone", "grandchild", "child b", "child a", "first"]


def test_runs_that_are_each_others_parents_stay(on_sqlite) -> None:
    one = make(on_sqlite, "one", 1)
    two = make(on_sqlite, "two", 2, **{"mlflow.parentRunId": one})
    on_sqlite.client.set_tag(one, "mlflow.parentRunId", two)
    own = make(on_sqlite, "own", 3)
    on_sqlite.client.set_tag(own, "mlflow.parentRunId", own)
    runs = connect(on_sqlite.uri).runs(on_sqlite.experiment_id).runs
    assert names(nested(runs)) == ["own", "two", "one"]


def test_a_parent_without_a_table_says_that_its_nested_runs_hold_them(workspace) -> None:
    parent = workspace.run("search")
    store = connect(workspace.uri)
    with pytest.raises(UnreadableTableError, match="log_predictions"):
        store.load(parent)
    workspace.run("trial", **{"mlflow.parentRunId": parent})
    with pytest.raises(NestedTablesError, match=r"'search' has no table .* its nested runs"):
        connect(workspace.uri).load(parent)
