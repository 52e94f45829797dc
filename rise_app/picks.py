"""Several runs of one experiment, picked and read: what Compare and Environments begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rise_app import loaders, switches
from rise_app.bootstrap import Stage
from rise_app.connection import stop_with
from rise_app.loaders import Analysis, Loaded, Question
from rise_app.mapping import link_to_columns
from rise_app.messages import as_text, show_error, show_notes
from rise_core import Evaluation
from rise_core.exceptions import ColumnError, PredictionsError, RiseError
from rise_core.tracking import Experiment, Run

__all__ = ["Answer", "Models", "Picks", "answers", "evaluate_picks", "model_names", "pick_runs"]


Answer = tuple[Question, Evaluation]
"""What was asked of a model, and its evaluation."""


@dataclass(frozen=True)
class Picks:
    """Runs whose tables could be read, in the order chosen.

    Attributes
    ----------
    experiment : the runs' experiment
    runs : the runs
    names : run id to a short name that no other run of the pick has
    tables : run id to table, roles and checked rows
    """

    experiment: Experiment
    runs: Sequence[Run]
    names: Mapping[str, str]
    tables: Mapping[str, Loaded]


def pick_runs(stage: Stage) -> Picks:
    """Draw the choice of experiment and runs, and read their tables.

    A run that cannot be read is said and left out; the script ends where none can be listed.
    """
    try:
        with stage.switches:
            experiment = switches.choose_experiment(loaders.experiments(stage.store))
        runs = switches.choose_runs(stage.store, experiment)
    except RiseError as error:
        stop_with("The runs cannot be read.", error)
    names = model_names(runs)
    tables, broken = loaders.load_tables(stage.store, runs)
    for run_id, problem in broken.items():
        show_error(f"{as_text(names[run_id])} is left out.", problem)
        if isinstance(problem, ColumnError | PredictionsError):
            link_to_columns(run_id, names[run_id])
    show_notes(_noted(tables, names))
    return Picks(experiment, [run for run in runs if run.id in tables], names, tables)


@dataclass(frozen=True)
class Models:
    """Picked runs that could be evaluated, by their short names, in the order chosen.

    Attributes
    ----------
    runs, questions, evaluations : the run, what was asked of it, and the answer
    """

    runs: Mapping[str, Run]
    questions: Mapping[str, Question]
    evaluations: Mapping[str, Evaluation]


def _noted(tables: Mapping[str, Loaded], names: Mapping[str, str]) -> tuple[str, ...]:
    """What was done to rows before they were evaluated, once for all runs it was done to."""
    runs: dict[str, list[str]] = {}
    for run_id, (_, _, predictions) in tables.items():
        for note in predictions.notes:
            runs.setdefault(note, []).append(names[run_id])
    return tuple(
        note if len(whose) == len(tables) else f"{', '.join(whose)}: {note}"
        for note, whose in runs.items()
    )


def evaluate_picks(
    picks: Picks, analysis: Analysis, check: Callable[[Evaluation], None] = lambda _: None
) -> Models:
    """Ask the same of every picked run; one that cannot answer is said and left out.

    ``check`` may refuse an evaluation by a RiseError.
    """

    def answer(run: Run) -> Answer:
        table, roles, predictions = picks.tables[run.id]
        question = loaders.question_of(run, table, roles, predictions, analysis)
        ev = loaders.evaluation(question, predictions)
        check(ev)
        return question, ev

    runs = {picks.names[run.id]: run for run in picks.runs}
    questions, found = answers({name: partial(answer, run) for name, run in runs.items()})
    return Models({name: runs[name] for name in found}, questions, found)


def answers(
    asks: Mapping[str, Callable[[], Answer]],
) -> tuple[dict[str, Question], dict[str, Evaluation]]:
    """Evaluate each of several models, by name; one that cannot be is said and left out."""
    questions, found = {}, {}
    for name, ask in asks.items():
        try:
            questions[name], found[name] = ask()
        except RiseError as error:
            show_error(f"{as_text(name)} is left out.", error)
    return questions, found


def model_names(runs: Sequence[Run]) -> dict[str, str]:
    """Return a short name for each run by its id: the algorithm, and what tells it from others."""
    plain = [str(run.algorithm) for run in runs]
    seeded = [
        name if run.seed is None else f"{name} · {run.seed}"
        for name, run in zip(plain, runs, strict=True)
    ]
    if len(set(plain)) == len(plain):
        names = plain
    elif len(set(seeded)) == len(seeded):
        names = seeded
    else:
        names = [f"{run.name} ({run.id[:6]})" for run in runs]
    return {run.id: name for run, name in zip(runs, names, strict=True)}
