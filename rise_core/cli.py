"""The command line: `evaluate`, `check`, `report` and `write`, for files and for runs."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, partial
from math import isfinite, isnan
from pathlib import Path
from typing import Any

from rise_core import Evaluation, RiseError, Settings, __version__, evaluate_predictions
from rise_core.binning import parse_edges
from rise_core.columns import Roles
from rise_core.exceptions import ColumnError, PredictionsError
from rise_core.knees import DETECTORS
from rise_core.residuals import RESIDUALS
from rise_core.tracking import Store, connect
from rise_core.tracking.address import clean_text
from rise_core.tracking.sources import Correction, Source, read_source
from rise_core.wording import METRICS, format_number

__all__ = ["FAILED", "HELD", "UNREADABLE", "USAGE", "main"]

HELD, FAILED, USAGE, UNREADABLE = 0, 1, 2, 3
"""Exit status: all well; a bound does not hold; wrong arguments; predictions cannot be used."""

_SOURCES = (
    "A SOURCE is a file of predictions (parquet, csv, csv.gz, jsonl, json), or a run: its id, "
    "runs:/ID, runs:/ID/path/of/table, models:/NAME@alias or models:/NAME/version. Runs are read "
    "from --tracking-uri or MLFLOW_TRACKING_URI; files need no MLflow."
)
_STATUS = (
    "Exit status: 0 all well; 1 a bound of `check` does not hold, or its indicator is undefined; "
    "2 wrong arguments; 3 predictions that cannot be read or evaluated."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status.

    Parameters
    ----------
    arguments : the words after ``python -m rise_core``; those of the process by default
    """
    parser = _parser()
    asked = parser.parse_args(arguments)
    try:
        status: int = asked.command(asked)
        sys.stdout.flush()
    except _UsageError as error:
        parser.error(str(error))
    except RiseError as error:
        _complain(error)
        return UNREADABLE
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return HELD
    return status


class _UsageError(Exception):
    """Arguments that contradict each other or the predictions' settings."""


# ---------------------------------------------------------------------------------- arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rise_core",
        description="See where, and for whom, a classifier errs.",
        epilog=f"{_SOURCES} {_STATUS}",
    )
    parser.add_argument("--version", action="version", version=f"rise_core {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    evaluate = _command(commands, "evaluate", _evaluate, "the indicators of each source")
    evaluate.add_argument("--intervals", action="store_true",
                          help="also intervals, and where random groupings fall")  # fmt: skip
    evaluate.add_argument("--json", action="store_true", help="everything, as JSON")

    check = _command(commands, "check", _check, "hold indicators to bounds; for CI")
    names = ", ".join(METRICS)
    check.add_argument("--max", type=_bound, action="append", default=[], metavar="NAME=VALUE",
                       help=f"largest value allowed; NAME is one of {names}")  # fmt: skip
    check.add_argument("--min", type=_bound, action="append", default=[], metavar="NAME=VALUE",
                       help="smallest value allowed")  # fmt: skip
    check.add_argument("--json", action="store_true", help="the outcome as JSON")

    report = _command(commands, "report", _report, "one HTML file that needs no network")
    report.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    report.add_argument("--title", help="heading of the report")
    report.add_argument("--fairness", default="w1", choices=[k for k in METRICS if k != "accuracy"],
                        help="indicator of the trade-off (w1)")  # fmt: skip
    report.add_argument("--baseline", help="model that the others are compared with; the first")
    report.add_argument("--choice", help="model that was taken")
    report.add_argument("--note", default="", help="why")

    write = _command(commands, "write", _write, "write to runs; without --yes only say what")
    write.add_argument("--yes", action="store_true", help="write, instead of a dry run")
    write.add_argument("--intervals", action="store_true", help="also intervals, as metrics")
    write.add_argument("--report", action="store_true", help="also the report, as a file")
    write.add_argument("--keep-columns", action="store_true",
                       help="also which column is what, as a tag of the experiment")  # fmt: skip
    return parser


def _command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], summary: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"Show {summary}." if name == "evaluate" else None,
        epilog=f"{_SOURCES} {_STATUS}",
    )  # fmt: skip
    parser.set_defaults(command=run)
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("--tracking-uri", metavar="URI", help="store of the runs")

    columns = parser.add_argument_group(
        "columns", "which column is what; what is not given is read from the log or guessed"
    )
    columns.add_argument("--y-true", metavar="COLUMN", help="label")
    columns.add_argument("--y-prob", metavar="COLUMN", help="score of the positive class")
    columns.add_argument("--sensitive-features", nargs="+", default=[], metavar="COLUMN",
                         help="groups; with several, each is evaluated")  # fmt: skip
    columns.add_argument("--bins", type=_edges, action="append", default=[],
                         metavar="COLUMN=EDGES", help="bands of a numeric group column, "
                         "such as age=30,45,60")  # fmt: skip
    columns.add_argument(
        "--intersect",
        dest="intersections",
        type=_crossing,
        action="append",
        default=[],
        metavar="COLUMN,COLUMN",
        help="also the groups of several columns crossed, such as sex,age",
    )
    columns.add_argument("--pos-label", metavar="LABEL", help="positive class")
    columns.add_argument("--environment", metavar="COLUMN", help="environment of each row")
    columns.add_argument("--sample-weight", metavar="COLUMN")
    columns.add_argument("--cluster", metavar="COLUMN", help="rows that belong together")
    columns.add_argument("--row-id", metavar="COLUMN", help="pairs the rows of several models")
    columns.add_argument("--scale", choices=("probability", "percent", "logit", "decision"),
                         help="what the scores are; percent and logit are converted")  # fmt: skip

    how = parser.add_argument_group("evaluation")
    how.add_argument("--sensitive", metavar="GROUP", help="group to look at")
    how.add_argument("--in-environment", metavar="LABEL", help="only the rows of one environment")
    how.add_argument("--threshold", type=float, default=0.5, help="of the decision (0.5)")
    how.add_argument("--residual", choices=list(RESIDUALS), default="signed_error")
    how.add_argument("--base-rates", choices=("observed", "equal"), default="observed")
    how.add_argument("--detector", choices=DETECTORS, default="prominent", help="of the knees")
    return parser


def _edges(text: str) -> tuple[str, tuple[float, ...]]:
    name, sign, edges = text.rpartition("=")
    if not sign or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not COLUMN=EDGES, such as age=30,45,60")
    try:
        return name, parse_edges(edges, name)
    except ColumnError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _crossing(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if len(names) < 2 or len(set(names)) < len(names) or not all(names):
        raise argparse.ArgumentTypeError(f"{text!r} is not COLUMN,COLUMN, such as sex,age")
    return names


def _bound(text: str) -> tuple[str, float]:
    name, sign, number = text.partition("=")
    name = name.strip().removeprefix("rise.")
    if not sign:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as w1=0.1")
    if name not in METRICS:
        raise argparse.ArgumentTypeError(
            f"there is no indicator {name!r}; there are {', '.join(METRICS)}"
        )
    try:
        value = float(number)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{number!r} is not a number") from error
    if not isfinite(value):
        raise argparse.ArgumentTypeError(f"a bound must be finite; came {number}")
    return name, value


# ------------------------------------------------------------------------------------ reading


@dataclass(frozen=True)
class _Model:
    """A source that was evaluated, by one sensitive feature."""

    name: str
    source: Source
    roles: Roles
    notes: tuple[str, ...]
    ev: Evaluation

    @property
    def facts(self) -> dict[str, Any]:
        run = self.source.run
        return {
            "name": self.name,
            "file": self.source.table.path,
            "run_id": None if run is None else run.id,
            "roles": self.roles.to_dict(),
            "roles_from": self.source.table.roles_from,
            "notes": list(self.notes),
        }


def _opener(asked: argparse.Namespace) -> Callable[[], Store]:
    return cache(partial(connect, asked.tracking_uri, writable=getattr(asked, "yes", False)))


def _settings(asked: argparse.Namespace) -> Settings:
    try:
        return Settings(asked.threshold, asked.residual, asked.base_rates, asked.detector)
    except PredictionsError as error:
        raise _UsageError(str(error)) from error


def _read(asked: argparse.Namespace) -> Iterator[list[_Model] | RiseError]:
    """Evaluate each source, by each of its sensitive features; a failure stops no other."""
    settings, store, names = _settings(asked), _opener(asked), set[str]()
    given = {name.name: getattr(asked, name.name) for name in fields(Correction)}
    groups = {
        "sensitive_features": tuple(asked.sensitive_features),
        "bins": dict(asked.bins),
        "intersections": tuple(asked.intersections),
    }
    correction = Correction(**given | groups)
    for text in asked.sources:
        try:
            source = read_source(text, store)
            predictions, roles, notes = correction.predictions(source.table)
            if asked.in_environment is not None:
                predictions = predictions.in_environment(asked.in_environment)
            name = _free_name(source, names)
            yield [
                _Model(name, source, roles, notes, evaluate_predictions(
                    predictions, feature=feature, sensitive=asked.sensitive, settings=settings
                ))
                for feature in predictions.features
            ]  # fmt: skip
        except RiseError as error:
            yield type(error)(f"{clean_text(text, 80)}: {error}")


def _free_name(source: Source, taken: set[str]) -> str:
    """Name of a model that no other has."""
    run = source.run
    path = Path(source.table.path)
    names = [source.name, f"{path.parent.name}/{path.name}", source.table.path]
    if run is not None:
        names = [source.name, f"{source.name} {run.id[:8]}", f"{run.id} {source.table.path}"]
    name = next((name for name in names if name not in taken), f"{names[-1]} {len(taken)}")
    taken.add(name)
    return name


def _all(asked: argparse.Namespace) -> tuple[list[_Model], bool]:
    """Every model that could be evaluated, and whether all could; the others are complained of."""
    models: list[_Model] = []
    whole = True
    for found in _read(asked):
        if isinstance(found, RiseError):
            _complain(found)
            whole = False
        else:
            models += found
    return models, whole


# ----------------------------------------------------------------------------------- evaluate


def _evaluate(asked: argparse.Namespace) -> int:
    models, whole = _all(asked)
    if asked.json:
        _say(_json([_as_dict(model, asked.intervals) for model in models]))
    elif models:
        _say(_intervals(models) if asked.intervals else _values(models))
        _say("\n" + "\n".join(line for model in models for line in _remarks(model)))
    return HELD if whole else UNREADABLE


def _as_dict(model: _Model, intervals: bool) -> dict[str, Any]:
    found = model.facts | model.ev.to_dict()
    if intervals:
        known = model.ev.uncertainty()
        found["estimates"] = [
            asdict(e) | {"distinguishable": e.distinguishable} for e in known.indicators.values()
        ]
        found |= {"confidence": known.confidence, "n_boot": known.n_boot, "n_perm": known.n_perm,
                  "random_state": known.random_state}  # fmt: skip
    return found


def _values(models: list[_Model]) -> str:
    head = ["model", "by", "rows", *(f"{m.name} {m.arrow}" for m in METRICS.values())]
    rows = [
        [model.name, model.ev.feature, f"{model.ev.n:,}",
         *(format_number(value) for _, value in model.ev.indicators)]
        for model in models
    ]  # fmt: skip
    return _table(head, rows, left=2)


def _intervals(models: list[_Model]) -> str:
    head = ["model", "by", "indicator", "value", "interval", "random groupings", ""]
    rows = []
    for model in models:
        for key, e in model.ev.uncertainty().indicators.items():
            remark = {True: "", False: "like random", None: ""}[e.distinguishable]
            rows.append([
                model.name, model.ev.feature, METRICS[key].name, format_number(e.value),
                _span(e.low, e.high), _span(e.null_low, e.null_high),
                "unstable" if e.unstable else remark,
            ])  # fmt: skip
    return _table(head, rows, left=3)


def _span(low: float, high: float) -> str:
    return "–" if isnan(low) else f"{format_number(low)} to {format_number(high)}"


def _remarks(model: _Model) -> Iterator[str]:
    """What the numbers stand on: columns, groups, rows left out, what is undefined and why."""
    ev, roles = model.ev, model.roles
    groups = ", ".join(f"{label} {curve.n:,}" for label, curve in ev.groups.items())
    against = f"; {ev.sensitive} against {ev.reference}" if ev.reference else ""
    yield (
        f"{model.name}: label {roles.y_true}, score {roles.y_prob} of class "
        f"{ev.predictions.pos_label} ({model.source.table.roles_from}); "
        f"{ev.feature}: {groups}{against}"
    )
    if ev.n < ev.n_rows:
        why = ", ".join(f"{count:,} {reason}" for reason, count in ev.left_out.items())
        yield f"  {ev.n_rows - ev.n:,} of {ev.n_rows:,} rows left out: {why}"
    for name, reason in ev.undefined.items():
        if name in METRICS:
            yield f"  {METRICS[name].name} is undefined: {reason}"
    for note in model.notes:
        yield f"  {note}"


# -------------------------------------------------------------------------------------- check


@dataclass(frozen=True)
class _Verdict:
    """One bound, held against one model."""

    model: str
    feature: str
    indicator: str
    value: float
    sign: str
    bound: float
    held: bool
    reason: str | None

    def line(self) -> str:
        word = "ok  " if self.held else "FAIL"
        found = (
            f"is undefined: {self.reason}"
            if isnan(self.value)
            else f"= {format_number(self.value, 4)}"
        )
        wanted = f"wanted {self.sign} {self.bound:g}"
        return f"{word}  {self.model} by {self.feature}: {self.indicator} {found}, {wanted}"


def _check(asked: argparse.Namespace) -> int:
    if not asked.max and not asked.min:
        raise _UsageError("check needs a bound, such as --max w1=0.1 or --min accuracy=0.8")
    models, whole = _all(asked)
    verdicts = [verdict for model in models for verdict in _verdicts(model, asked)]
    if asked.json:
        _say(_json([asdict(verdict) for verdict in verdicts]))
    else:
        for verdict in verdicts:
            _say(verdict.line())
    if not whole:
        return UNREADABLE
    return HELD if all(verdict.held for verdict in verdicts) else FAILED


def _verdicts(model: _Model, asked: argparse.Namespace) -> Iterator[_Verdict]:
    bounds = [("≤", *bound) for bound in asked.max] + [("≥", *bound) for bound in asked.min]
    for sign, name, bound in bounds:
        value = float(getattr(model.ev.indicators, name))
        # nan compares false with everything, so that an undefined indicator never holds
        held = value <= bound if sign == "≤" else value >= bound
        yield _Verdict(model.name, model.ev.feature, name, value, sign, bound, held,
                       model.ev.undefined.get(name))  # fmt: skip


# ------------------------------------------------------------------------------------- report


def _report(asked: argparse.Namespace) -> int:
    models, whole = _all(asked)
    if not whole:
        _complain("No report was written, since a source is missing from it.")
        return UNREADABLE
    models = list({model.name: model for model in reversed(models)}.values())[::-1]
    if len(models) > 1:
        html = _comparison(models, asked)
    else:
        html = _single(models[0], _opener(asked), asked.title, asked.note)
    try:
        asked.output.write_text(html, "utf-8")
    except OSError as error:
        raise _UsageError(f"{asked.output} cannot be written: {error.strerror}") from error
    _say(f"{asked.output}: {len(models)} {'models' if len(models) > 1 else 'model'}, "
         f"{asked.output.stat().st_size / 1e6:.1f} MB")  # fmt: skip
    return HELD


def _comparison(models: list[_Model], asked: argparse.Namespace) -> str:
    from rise_core.comparison import compare
    from rise_core.report import comparison_report

    store = _opener(asked)
    names = [model.name for model in models]
    for option in ("baseline", "choice"):
        if (value := getattr(asked, option)) is not None and value not in names:
            raise _UsageError(f"--{option} {value!r} is none of {', '.join(names)}")
    return comparison_report(
        compare({model.name: model.ev for model in models}, baseline=asked.baseline),
        title=asked.title or f"{len(models)} models compared",
        fairness=asked.fairness,
        choice=asked.choice,
        note=asked.note,
        runs={model.name: _reference(model, store) for model in models},
        algorithms={m.name: m.source.run.algorithm for m in models if m.source.run is not None},
    )


def _single(
    model: _Model, store: Callable[[], Store], title: str | None = None, note: str = ""
) -> str:
    from rise_core.report import evaluation_report

    return evaluation_report(
        model.ev,
        title=title or model.name,
        name=model.name,
        note=note,
        run=_reference(model, store),
    )


def _reference(model: _Model, store: Callable[[], Store]) -> Any:
    from rise_core.report import RunReference

    run, table = model.source.run, model.source.table
    mapping = model.roles.to_dict()
    if run is None:
        return RunReference("", model.name, table=Path(table.path).name, mapping=mapping)
    facts = {"data set": run.dataset, "algorithm": run.algorithm, "seed": run.seed,
             "environment": run.environment}  # fmt: skip
    return RunReference(
        run.id,
        run.name,
        url=store().page_of(run),
        table=table.path,
        mapping=mapping,
        facts={name: str(value) for name, value in facts.items() if value is not None},
    )


# -------------------------------------------------------------------------------------- write


def _write(asked: argparse.Namespace) -> int:
    from rise_core.tracking.writing import plan, write

    models, whole = _all(asked)
    if any(model.source.run is None for model in models):
        raise _UsageError("write needs runs; a file cannot be written to")
    store = _opener(asked)()
    # the first sensitive column of each: a run has one metric of a name
    for model in list({model.name: model for model in reversed(models)}.values())[::-1]:
        run = model.source.run
        assert run is not None  # for mypy: checked above
        planned = plan(
            store,
            run,
            model.ev,
            model.ev.uncertainty() if asked.intervals else None,
            environment=asked.in_environment,
            report=_single(model, lambda: store) if asked.report else None,
            roles=model.roles if asked.keep_columns else None,
        )
        _say(str(planned))
        if asked.yes:
            done = write(store, planned)
            _say(f"  written: {len(done)}")
    if not asked.yes:
        _say("Nothing was written. Add --yes to write.")
    return HELD if whole else UNREADABLE


# ------------------------------------------------------------------------------------ writing


def _table(head: list[str], rows: Iterable[list[str]], left: int) -> str:
    """Columns under each other: the first `left` ones to the left, numbers to the right."""
    lines = [head, *([clean_text(cell, 60) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _json(value: Any) -> str:
    return json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    """Undefined numbers as null, infinite ones as text: JSON has neither."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None if isnan(value) else "inf" if value > 0 else "-inf"
    return value


def _say(text: str) -> None:
    # names come from foreign hands: nothing in them may steer the terminal
    lines = ["".join(mark for mark in line if mark.isprintable()) for line in text.split("\n")]
    encoding = sys.stdout.encoding or "utf-8"
    plain = "\n".join(lines).encode(encoding, "replace").decode(encoding)
    sys.stdout.write(plain + "\n")


def _complain(what: object) -> None:
    sys.stderr.write(f"python -m rise_core: {what}\n")
