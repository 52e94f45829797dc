"""The Diagnose page: every switch changes what is drawn, and what is drawn is what is true."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rise_core import Evaluation
from rise_core.charts import tables
from rise_core.residuals import RESIDUALS
from tests.app.conftest import Shelf, Truth
from tests.app.reading import Screen, same_rows, values_of

Open = Callable[..., Screen]
Ask = Callable[[str], Truth]

FIRST = "erm number 0"


def agrees(page: Screen, ev: Evaluation, *, colour: str | None = None) -> None:
    """Hold that the page shows this evaluation: curves, indicators and facts."""
    assert same_rows(page.curves, tables.curve_table(tables.curves_of(ev, colour)))
    assert page.cards == values_of(ev, page.cards)
    assert len(page.cards) >= 7
    facts = page.facts
    assert facts["rows used"] == f"{ev.n:,} of {ev.n_rows:,}"
    assert facts["positive class"] == ev.predictions.pos_label
    assert facts["threshold"] == f"{ev.threshold:g}"
    assert facts["residual"].startswith(RESIDUALS[ev.residual].symbol)
    for label, curve in ev.groups.items():
        assert f"{label} (n = {curve.n:,})" in facts["groups"]
    # The axis says what a number means: the residual, and which class is the positive one.
    assert ev.predictions.pos_label in page.chart.spec


def test_the_page_opens_on_the_newest_run_and_says_what_was_evaluated(
    open_app: Open, lab: Shelf, truth: Ask
) -> None:
    page = open_app("Diagnose", lab.uri, experiment=lab.experiments["Lab"])
    ev = truth(lab.uri).evaluation(lab.runs[FIRST], environment="south")
    agrees(page, ev)
    assert page.facts["left out"] == "none"
    assert "ERM" in page.title
    assert "south" in page.title
    assert lab.runs[FIRST][:8] in page.facts["run"]
    assert page.address["run"] == lab.runs[FIRST]


def test_each_switch_changes_what_is_drawn(open_app: Open, lab: Shelf, truth: Ask) -> None:
    ask = truth(lab.uri).evaluation
    page = open_app("Diagnose", lab.uri, experiment=lab.experiments["Lab"])
    seen = [page.curves]

    def changed(ev: Evaluation) -> None:
        agrees(page, ev)
        assert not any(same_rows(page.curves, before) for before in seen)
        seen.append(page.curves)

    page.choose("Algorithm", "Mixup")  # keeps the seed
    run = lab.runs["mixup number 0"]
    changed(ask(run, environment="south"))
    assert page.address["run"] == run

    run = lab.runs["mixup number 1"]
    page.choose("Run", run)
    changed(ask(run, environment="south"))
    assert page.address["run"] == run

    page.choose("Environment", "north")
    changed(ask(run, environment="north"))
    assert page.address["environment"] == "north"

    page.choose("Environment", "(all)")
    changed(ask(run))

    page.choose("Protected attribute", "region")
    changed(ask(run, attribute="region"))
    assert page.address["attribute"] == "region"

    page.choose("Residual", "decision_gap")
    changed(ask(run, attribute="region", residual="decision_gap"))
    assert page.address["residual"] == "decision_gap"

    page.choose("Threshold", 0.3)
    changed(ask(run, attribute="region", residual="decision_gap", threshold=0.3))
    assert page.address["threshold"] == "0.3"

    page.choose("Base rates", "equal")
    settings: dict[str, Any] = {"residual": "decision_gap", "threshold": 0.3}
    changed(ask(run, attribute="region", base_rates="equal", **settings))
    assert page.address["rates"] == "equal"
    assert "equal" in page.facts["base rates"]

    page.choose("Data set", lab.experiments["Other"])
    # The same algorithm is not there; the only run is shown, on all its rows.
    other = ask(lab.runs["alone"], environment=None, base_rates="equal", **settings)
    assert page.address["run"] == lab.runs["alone"]
    assert page.facts["rows used"] == "120 of 120"
    assert page.facts["residual"].startswith(RESIDUALS[other.residual].symbol)


def test_the_threshold_moves_decisions_and_not_signed_errors(
    open_app: Open, lab: Shelf, truth: Ask
) -> None:
    page = open_app("Diagnose", lab.uri, run=lab.runs[FIRST])
    curves, cards = page.curves, page.cards
    page.choose("Threshold", 0.7)
    agrees(page, truth(lab.uri).evaluation(lab.runs[FIRST], environment="south", threshold=0.7))
    assert same_rows(page.curves, curves)
    assert page.cards["accuracy"] != cards["accuracy"]
    page.choose("Threshold", 0.5)
    assert "threshold" not in page.address
    assert page.cards == cards


def test_a_second_click_on_a_chosen_button_keeps_the_choice(open_app: Open, lab: Shelf) -> None:
    page = open_app("Diagnose", lab.uri, run=lab.runs[FIRST], residual="decision_gap")
    page.choose("Residual", None)
    assert page.widget("Residual").value == "decision_gap"
    assert page.facts["residual"].startswith("ŷ − p")
    assert page.address["residual"] == "decision_gap"


@pytest.mark.parametrize("colour", ["region", "environment", "correctness"])
def test_colours_regroup_the_curves_and_leave_the_indicators(
    colour: str, open_app: Open, lab: Shelf, truth: Ask
) -> None:
    page = open_app("Diagnose", lab.uri, run=lab.runs[FIRST], environment="(all)")
    cards = page.cards
    page.choose("Colour by", colour)
    agrees(page, truth(lab.uri).evaluation(lab.runs[FIRST]), colour=colour)
    assert page.cards == cards
    assert page.address["colour"] == colour


def test_the_global_view_draws_one_curve_in_pieces(open_app: Open, lab: Shelf, truth: Ask) -> None:
    page = open_app("Diagnose", lab.uri, run=lab.runs[FIRST], environment="(all)")
    group_view = page.spec
    page.choose("View", "global")
    assert page.address["view"] == "global"
    assert page.spec != group_view
    ev = truth(lab.uri).evaluation(lab.runs[FIRST])

    wide = tables.piece_curve_table(ev.overall, ev.pieces(k=40))
    assert same_rows(page.pieces, wide)
    page.choose("Most pieces of the curve", 3)
    few = tables.piece_curve_table(ev.overall, ev.pieces(k=3))
    assert same_rows(page.pieces, few)
    assert page.pieces["piece"].nunique() <= 3

    page.choose("Colour by", "correctness")
    coloured = tables.piece_curve_table(ev.overall, ev.pieces(k=3, by="correctness"))
    assert same_rows(page.pieces, coloured)
    assert set(coloured["curve"]) != set(few["curve"])


def test_an_address_opens_what_it_says(open_app: Open, lab: Shelf, truth: Ask) -> None:
    link = {
        "run": lab.runs["irm number 1"],
        "environment": "north",
        "attribute": "region",
        "threshold": "0.35",
        "residual": "decision_gap",
        "rates": "equal",
        "view": "global",
    }
    page = open_app("Diagnose", lab.uri, **link)
    shown = {
        label: page.widget(label).value
        for label in ("Algorithm", "Run", "Environment", "Protected attribute", "Residual", "View")
    }
    assert shown == {
        "Algorithm": "IRM",
        "Run": link["run"],
        "Environment": "north",
        "Protected attribute": "region",
        "Residual": "decision_gap",
        "View": "global",
    }
    assert page.widget("Threshold").value == 0.35
    assert page.widget("Base rates").value == "equal"
    ev = truth(lab.uri).evaluation(
        link["run"],
        environment="north",
        attribute="region",
        threshold=0.35,
        residual="decision_gap",
        base_rates="equal",
    )
    assert page.cards == values_of(ev, page.cards)
    assert same_rows(page.pieces, tables.piece_curve_table(ev.overall, ev.pieces()))
    # The address still holds all of it, so it can be handed on from here.
    assert link.items() <= page.address.items()


@pytest.mark.parametrize(
    "garbage",
    [
        {"environment": "Mars"},
        {"attribute": "shoe size"},
        {"threshold": "high"},
        {"threshold": "nan"},
        {"threshold": "-3"},
        {"residual": "<script>"},
        {"rates": "0"},
        {"view": "../../etc/passwd"},
        {"colour": "![x](https://example.org/x.png)"},
        {"surprise": "yes"},
    ],
    ids=lambda query: "-".join([*query, *query.values()])[:20],
)
def test_an_address_with_garbage_falls_back(
    garbage: dict[str, str], open_app: Open, lab: Shelf
) -> None:
    page = open_app("Diagnose", lab.uri, **{"experiment": lab.experiments["Lab"], **garbage})
    assert page.cards
    assert len(page.curves)
    (name,) = garbage
    if name == "threshold":
        assert 0 <= page.widget("Threshold").value <= 1
        assert page.facts["threshold"] in ("0", "0.5")
    assert page.address.get(name) != garbage[name] or name == "surprise"


def test_an_experiment_that_is_not_there_falls_back(open_app: Open, lab: Shelf) -> None:
    page = open_app("Diagnose", lab.uri, experiment="999999")
    assert page.widget("Data set").value in lab.experiments.values()
    assert page.address.get("experiment") != "999999"


def test_a_run_that_is_not_there_is_said_and_another_one_shown(open_app: Open, lab: Shelf) -> None:
    page = open_app("Diagnose", lab.uri, experiment=lab.experiments["Lab"], run="0" * 32)
    assert any("0" * 32 in text and "not found" in text for text in page.texts)
    assert page.address["run"] == lab.runs[FIRST]
    assert page.cards
    page.run()
    assert not any("not found" in text for text in page.texts)


def test_an_experiment_without_runs_says_so_and_leaves_a_way_out(
    open_app: Open, lab: Shelf
) -> None:
    page = open_app("Diagnose", lab.uri, experiment=lab.experiments["Empty"])
    assert any("'Empty' has no runs" in text for text in page.texts)
    page.choose("Data set", lab.experiments["Lab"])
    assert page.cards


def test_no_combination_of_switches_breaks_the_page(open_app: Open, lab: Shelf, truth: Ask) -> None:
    options: dict[str, list[Any]] = {
        "environment": [None, "north", "south"],
        "attribute": ["sex", "region"],
        "residual": ["signed_error", "decision_gap"],
        "rates": ["observed", "equal"],
        "threshold": [0.0, 0.5, 1.0],
        "view": ["groups", "global"],
        "colour": ["sex", "region", "environment", "correctness"],
    }
    everything = list(itertools.product(*options.values()))
    picked = random.Random(2).sample(everything, 24)
    for place, values in enumerate(options.values()):
        assert {combination[place] for combination in picked} == set(values)
    run = lab.runs["irm number 0"]
    ask = truth(lab.uri).evaluation
    for combination in picked:
        chosen = dict(zip(options, combination, strict=True))
        environment = chosen["environment"]
        query = {name: f"{value}" for name, value in chosen.items()}
        query["environment"] = environment or "(all)"
        page = open_app("Diagnose", lab.uri, run=run, **query)
        ev = ask(
            run,
            environment=environment,
            attribute=chosen["attribute"],
            residual=chosen["residual"],
            threshold=chosen["threshold"],
            base_rates=chosen["rates"],
        )
        assert page.cards == values_of(ev, page.cards), chosen
        assert page.facts["rows used"] == f"{ev.n:,} of {ev.n_rows:,}", chosen
        assert len(page.pieces if chosen["view"] == "global" else page.curves), chosen


def test_the_selection_survives_a_change_of_page(open_app: Open, lab: Shelf) -> None:
    page = open_app("Experiments", lab.uri, experiment=lab.experiments["Lab"]).settle()
    page.choose("Protected attribute", "region")
    page.choose("Residual", "decision_gap")
    page.choose("Threshold", 0.3)
    page.at.switch_page("pages/diagnose.py")
    page.run()
    assert page.widget("Data set").value == lab.experiments["Lab"]
    assert page.widget("Protected attribute").value == "region"
    assert page.widget("Residual").value == "decision_gap"
    assert page.widget("Threshold").value == 0.3
    assert page.facts["threshold"] == "0.3"


def test_the_demo_opens_with_nothing_set_and_every_model_can_be_looked_at(
    open_app: Open, demo: Path, truth: Ask
) -> None:
    ask = truth(f"sqlite:///{demo / 'demo' / 'mlflow.db'}")
    page = open_app("Diagnose", None)
    sets = {e.name: e.id for e in ask.store.experiments() if e.tags.get("rise.demo")}
    assert len(sets) >= 2
    for number, experiment in enumerate(sets.values()):
        page.choose("Data set", experiment)
        algorithms = list(page.widget("Algorithm").options)
        assert len(algorithms) >= 8
        # Every algorithm of one data set; the others share code and form with it.
        for algorithm in algorithms if number == 0 else algorithms[-1:]:
            page.choose("Algorithm", algorithm)
            run = ask.run(page.address["run"])
            assert (run.experiment_id, run.algorithm) == (experiment, algorithm)
            # What the run holds out is what is shown first.
            ev = ask.evaluation(run.id, environment=run.environment)
            assert page.cards == values_of(ev, page.cards)
            assert page.facts["positive class"] == ev.predictions.pos_label


def test_a_link_names_a_model_of_the_registry(open_app: Open, lab: Shelf, truth: Ask) -> None:
    client, run_id = lab.client, lab.runs["irm number 1"]
    client.create_registered_model("churn")
    client.create_model_version("churn", f"runs:/{run_id}/model", run_id)
    client.set_registered_model_alias("churn", "champion", "1")
    page = open_app("Diagnose", lab.uri, run="models:/churn@champion")
    agrees(page, truth(lab.uri).evaluation(run_id, environment="south"))
    assert page.address["run"] == run_id
    nobody, lab_id = "models:/churn@nobody", lab.experiments["Lab"]
    page = open_app("Diagnose", lab.uri, run=nobody, experiment=lab_id)
    assert any(f"{nobody}: not found" in text for text in page.texts)
    assert page.cards  # another run is shown instead
