"""``python -m demo.train [data set …]``: make the demo predictions anew."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

from demo.cards import DATASETS
from demo.train.archives import CACHE
from rise_core.exceptions import RiseError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo.train", description=__doc__)
    parser.add_argument("datasets", nargs="*", metavar="DATASET", help=", ".join(DATASETS))
    parser.add_argument("--cache", type=Path, default=CACHE, help="where the archives are kept")
    parser.add_argument("--out", type=Path, default=Path("demo") / "predictions")
    given = parser.parse_args()
    unknown = sorted(set(given.datasets) - set(DATASETS))
    if unknown:
        parser.error(f"no data set named {', '.join(unknown)}; there are {', '.join(DATASETS)}")
    try:
        from demo.train.run import run
    except ModuleNotFoundError as error:
        print(f"{error}. Training needs: pip install -r requirements-train.txt", file=sys.stderr)
        return 1
    for name in given.datasets or DATASETS:
        started = time.monotonic()

        def report(done: int, total: int, text: str, name: str = name) -> None:
            seconds = round(time.monotonic() - started)  # noqa: B023
            print(f"{name:15s} {done:3d}/{total}  {seconds:4d} s  {text}", flush=True)

        try:
            problem = importlib.import_module(f"demo.train.{name}").build(given.cache)
        except RiseError as error:
            print(error, file=sys.stderr)
            return 1
        run(problem, given.out, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
