"""Listing experiments and runs: server-side filter and order, pages, and what is left out."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime

import pytest

from rise_core.exceptions import RiseError, ServerUnreachableError, TrackingError
from rise_core.tracking import connect, where


def test_experiments_last_changed_first_and_deleted_left_out(workspace) -> None:
    client = workspace.client
    mine = client.get_experiment(workspace.experiment_id).name
    gone = client.create_experiment(f"gone {time.monotonic_ns()}")
    client.delete_experiment(gone)
    client.set_experiment_tag(workspace.experiment_id, "team", "vision")
    found = connect(workspace.uri).experiments()
    assert gone not in [experiment.id for experiment in found]
    experiment = next(e for e in found if e.id == workspace.experiment_id)
    assert experiment.name == mine
    assert experiment.tags["team"] == "vision"
    times = [e.last_update for e in found if e.last_update is not None]
    assert times == sorted(times, reverse=True)


def test_runs_page_by_page_newest_first(workspace) -> None:
    made = [workspace.run(f"run {k}", seed=str(k)) for k in range(7)]
    store = connect(workspace.uri)
    first = store.runs(workspace.experiment_id, max_results=3)
    second = store.runs(workspace.experiment_id, max_results=3, page_token=first.next_token)
    third = store.runs([workspace.experiment_id], max_results=3, page_token=second.next_token)
    ids = [run.id for page in (first, second, third) for run in page.runs]
    assert sorted(ids) == sorted(made)
    starts = [run.start_time for page in (first, second, third) for run in page.runs]
    assert starts == sorted(starts, reverse=True)
    assert len(third.runs) == 1
    assert third.next_token is None


def test_facts_of_a_run(workspace) -> None:
    client = workspace.client
    run_id = workspace.run("night run", status=None, dataset="adult", algorithm="IRM")
    client.log_param(run_id, "random_state", 3)
    client.log_param(run_id, "test_env", "Black")
    client.log_metric(run_id, "auc", 0.8)
    client.log_metric(run_id, "loss", math.inf)
    client.log_metric(run_id, "gap", -math.inf)
    run = connect(workspace.uri).run(run_id)
    assert (run.name, run.dataset, run.algorithm) == ("night run", "adult", "IRM")
    assert (run.seed, run.environment) == ("3", "Black")
    assert (run.status, run.running, run.deleted) == ("RUNNING", True, False)
    assert run.metrics == {"auc": 0.8, "loss": math.inf, "gap": -math.inf}
    assert run.start_time is not None
    assert abs((datetime.now(UTC) - run.start_time).total_seconds()) < 60
    client.set_terminated(run_id, "FAILED")
    run = connect(workspace.uri).run(run_id)
    assert (run.status, run.running) == ("FAILED", False)


def test_a_run_without_tags_goes_by_its_name(on_sqlite) -> None:
    run = connect(on_sqlite.uri).run(on_sqlite.run("forest, depth 4"))
    assert (run.algorithm, run.dataset, run.environment, run.seed) == (
        "forest, depth 4", None, None, None,
    )  # fmt: skip


def test_dataset_from_the_logged_input(on_sqlite) -> None:
    from mlflow.entities import Dataset, DatasetInput

    run_id = on_sqlite.run()
    on_sqlite.client.log_inputs(run_id, [DatasetInput(Dataset("people", "1", "local", "{}"))])
    assert connect(on_sqlite.uri).run(run_id).dataset == "people"


def test_nested_runs_name_their_parent(on_sqlite) -> None:
    parent = on_sqlite.run("search")
    child = on_sqlite.run("trial", **{"mlflow.parentRunId": parent})
    assert connect(on_sqlite.uri).run(child).parent_id == parent


def test_deleted_runs_are_left_out_of_lists_and_marked_when_asked_for(workspace) -> None:
    kept, gone = workspace.run("kept"), workspace.run("gone")
    workspace.client.delete_run(gone)
    store = connect(workspace.uri)
    assert [run.id for run in store.runs(workspace.experiment_id).runs] == [kept]
    assert store.run(gone).deleted
    with pytest.raises(TrackingError, match=f"deleted.*restore --run-id {gone}"):
        store.load(gone)


def test_filter_and_order_are_done_by_the_server(workspace) -> None:
    for seed, dataset, auc in (("1", "adult", 0.7), ("2", "adult", 0.9), ("3", "crash", 0.8)):
        run_id = workspace.run(seed, dataset=dataset)
        workspace.client.log_metric(run_id, "auc", auc)
    store = connect(workspace.uri)
    found = store.runs(
        workspace.experiment_id, filter="tags.dataset = 'adult' and metrics.auc > 0.75"
    )
    assert [run.name for run in found.runs] == ["2"]
    best = store.runs(workspace.experiment_id, order_by=["metrics.auc DESC"])
    assert [run.name for run in best.runs] == ["2", "3", "1"]


def test_filters_from_tags_and_words(workspace) -> None:
    workspace.run("night shift", dataset="O'Hare", **{"odd key": "x y"})
    workspace.run("day shift", dataset="O'Hare")
    store = connect(workspace.uri)
    for text, tags, names in (
        ("", {"dataset": "O'Hare"}, ["day shift", "night shift"]),
        ("NIGHT", {"dataset": "O'Hare"}, ["night shift"]),
        ("", {"odd key": "x y"}, ["night shift"]),
        ("shift", {"dataset": "other"}, []),
    ):
        page = store.runs(workspace.experiment_id, filter=where(text, **tags))
        assert sorted(run.name for run in page.runs) == names
    with pytest.raises(TrackingError, match="both kinds of quotes"):
        where(dataset='it\'s "x"')


def test_a_filter_that_makes_no_sense_says_how_one_looks(workspace) -> None:
    store = connect(workspace.uri)
    with pytest.raises(TrackingError, match="A filter looks like"):
        store.runs(workspace.experiment_id, filter="dataset is adult")


def test_no_experiments_no_runs(on_sqlite) -> None:
    assert connect(on_sqlite.uri).runs([]).runs == ()


def test_unknown_run(workspace) -> None:
    with pytest.raises(TrackingError, match=r"not found at .*deleted meanwhile"):
        connect(workspace.uri).run("0" * 32)


def test_a_thousand_runs_cost_one_request(on_server, proxy) -> None:
    for k in range(3):
        on_server.run(str(k))
    store = connect(proxy.url)
    proxy.requests.clear()
    assert len(store.runs(on_server.experiment_id, max_results=1000).runs) == 3
    assert len(proxy.requests) == 1


def test_server_dies_and_comes_back(on_server, proxy) -> None:
    on_server.run("survivor")
    store = connect(proxy.url, timeout=2)
    proxy.dead = True
    started = time.monotonic()
    with pytest.raises(ServerUnreachableError, match="broke off"):
        store.runs(on_server.experiment_id)
    assert time.monotonic() - started < 10
    proxy.dead = False
    assert [run.name for run in store.runs(on_server.experiment_id).runs] == ["survivor"]


def test_a_server_that_hangs_in_the_middle(on_server, proxy) -> None:
    """MLflow's own client would wait a minute here."""
    on_server.run("survivor")
    store = connect(proxy.url, timeout=1)
    proxy.answers.clear()
    started = time.monotonic()
    with pytest.raises(ServerUnreachableError, match="did not answer within 1 s"):
        store.runs(on_server.experiment_id)
    assert time.monotonic() - started < 5
    proxy.answers.set()
    assert [run.name for run in store.runs(on_server.experiment_id).runs] == ["survivor"]


def test_a_long_answer_is_waited_for_while_the_server_lives(on_server, proxy) -> None:
    on_server.run("slow")
    store = connect(proxy.url, timeout=1)

    def slow(path: str, status: int, body: bytes) -> tuple[int, bytes]:
        if "runs/search" in path:
            time.sleep(2.5)
        return status, body

    proxy.spoil = slow
    assert [run.name for run in store.runs(on_server.experiment_id).runs] == ["slow"]


def test_a_server_long_unseen_is_looked_at_first(on_server, proxy) -> None:
    store = connect(proxy.url, timeout=2)
    store._seen_alive -= 60
    proxy.dead = True
    started = time.monotonic()
    with pytest.raises(ServerUnreachableError):
        store.experiments()
    assert time.monotonic() - started < 3
    proxy.dead = False
    assert store.experiments()


def test_a_body_of_another_program_is_cut(on_server, proxy) -> None:
    store = connect(proxy.url)
    proxy.spoil = lambda path, status, body: (418, b"<html>" + b"teapot " * 5000)
    with pytest.raises(RiseError) as caught:
        store.experiments()
    assert len(str(caught.value)) < 600
    assert "<" not in str(caught.value)
