"""A search in people's words, said in MLflow's filter language."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rise_core.tracking import Order, Run, Search
from rise_core.tracking.search import (
    MOST_FILTERS,
    Sources,
    filter_for_ids,
    is_filter,
    possible_sources,
    sources_in,
)

RUN = Run(
    id="0a1b2c3d" * 4,
    name="Night shift, lr=0.1",
    experiment_id="1",
    status="FINISHED",
    start_time=datetime(2026, 1, 1, tzinfo=UTC),
    end_time=None,
    dataset="adult",
    algorithm="IRM",
    environment=None,
    seed=None,
    params={"depth": "4"},
    tags={"team": "Blue"},
    metrics={"auc": 0.8},
    artifact_uri="",
)
PLACES = Sources(("tags.`dataset`",), ("tags.`algorithm`",))


@pytest.mark.parametrize(
    "text",
    [
        "metrics.auc > 0.8",
        "metrics.auc >",
        "tags.team = 'x' and params.lr = '3'",
        " params.`a b` LIKE '%x%'",
        "attributes.status = 'FAILED'",
        "status = 'FAILED'",
        "start_time > 1700000000000",
        "run_id IN ('a', 'b')",
        "dataset.name = 'adult'",
        "Metric.auc>1",
    ],
)
def test_the_filter_language_is_told_by_its_beginning(text) -> None:
    assert is_filter(text)
    assert Search(text).filters(Sources()) == [text.strip()]
    assert Search(text).depends_on == ()


@pytest.mark.parametrize(
    "text", ["", "night", "team=blue", "status=failed", "run.17", "a metrics.auc", "names in use"]
)
def test_all_else_is_words(text) -> None:
    assert not is_filter(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", True),
        ("night", True),
        ("NIGHT shift", True),
        ('"night shift"', True),
        ('"shift night"', False),
        ("irm", True),
        ("irm night", False),  # not in one place
        ("0a1b2c", True),
        ("1b2c3d", False),  # an id is known by its beginning
        ("team=blue", True),
        ("team=blu", False),
        ("team=", True),
        ("depth=4 team='BLUE'", True),
        ("depth=5", False),
        ("lr=0.1", True),  # in the name
        ("status=finished", True),
        ("status=failed", False),
        ("night depth=4", True),
        ("O'Hare", False),
    ],
)
def test_what_words_and_pairs_find(text, found) -> None:
    assert Search(text).test()(RUN) is found


def test_lists_find_one_of_them() -> None:
    assert Search(datasets=("adult", "crash"), algorithms=("IRM",)).test()(RUN)
    assert not Search(datasets=("crash",)).test()(RUN)
    assert not Search(datasets=("adult",), algorithms=("ERM",)).test()(RUN)


def test_several_values_are_several_filters_up_to_a_bound() -> None:
    some = Search(datasets=("a", "b"), algorithms=("x", "y", "z"))
    assert len(some.filters(PLACES)) == 6
    assert "tags.`dataset` = 'b' and tags.`algorithm` = 'x'" in some.filters(PLACES)
    # Where they would be too many, the server narrows by what takes the fewest.
    many = Search(datasets=("a", "b"), algorithms=tuple("abcdefgh"))
    assert many.filters(PLACES) == ["tags.`dataset` = 'a'", "tags.`dataset` = 'b'"]
    most = Search("metrics.auc > 1", algorithms=tuple(map(str, range(MOST_FILTERS + 1))))
    assert most.filters(PLACES) == ["metrics.auc > 1"]


def test_nothing_is_asked_where_nothing_can_be_found() -> None:
    assert Search(datasets=("a",)).filters(Sources()) == []
    assert Search().filters(Sources()) == [""]


def test_what_has_no_quotes_there_lets_any_sign_through() -> None:
    (found,) = Search(datasets=('O\'Hare "north"',)).filters(PLACES)
    assert found == "tags.`dataset` LIKE 'O_Hare _north_'"
    # SQLite folds only the letters of ASCII, and a backslash escapes on PostgreSQL.
    first, *_ = Search("Ärger c:\\x").filters(PLACES)
    assert first == "attributes.run_name ILIKE '%_rger%' and attributes.run_name ILIKE '%c:_x%'"


def test_ids_that_cannot_be_any_are_not_asked_for() -> None:
    assert filter_for_ids(["ab12", "x' or 'y"]) == "attributes.run_id IN ('ab12')"
    assert filter_for_ids(["'"]) == ""


def test_places_where_runs_say_their_facts() -> None:
    tagged = replace(RUN, tags={"dataset": "adult", "model": "IRM"}, params={})
    told = replace(RUN, tags={}, params={"data_name": "adult", "algo": "IRM"})
    named = replace(RUN, tags={}, params={}, algorithm=RUN.name)  # its data set was logged
    assert sources_in([tagged]) == Sources(("tags.`dataset`",), ("tags.`model`",))
    assert sources_in([told]) == Sources(("params.`data_name`",), ("params.`algo`",))
    assert sources_in([named]) == Sources(("dataset.name",), ("attributes.run_name",))
    assert sources_in([replace(named, dataset=None)]).dataset == ()
    for runs in ([tagged], [told], [named]):
        assert set(sources_in(runs).dataset) <= set(possible_sources("dataset"))
        assert set(sources_in(runs).algorithm) <= set(possible_sources("algorithm"))


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("newest", "attributes.start_time DESC"),
        ("oldest", "attributes.start_time ASC"),
        ("name", "attributes.run_name ASC"),
        ("rise.w1 asc", "metrics.`rise.w1` ASC"),
        ("val/auc top 1 desc", "metrics.`val/auc top 1` DESC"),
    ],
)
def test_orders(text, clause) -> None:
    order = Order.parse(text)
    assert order.clauses == [clause]
    assert order.text == text


@pytest.mark.parametrize("text", ["", "auc", "auc up", "`auc` desc", "a'b asc", " desc"])
def test_no_order(text) -> None:
    with pytest.raises(ValueError, match="No order"):
        Order.parse(text)
