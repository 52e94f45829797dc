"""Run the benchmarks: ``python -m benchmarks [NAME …] [--rows N] [--repeats K] [--json FILE]``."""

from __future__ import annotations

import argparse
import importlib
import json
import time
from pathlib import Path

from benchmarks.timing import Settings, machine

NAMES = ("evaluation", "uncertainty", "tracking")


def main() -> None:
    """Run what was asked for, print it, and write it down if a file was named."""
    defaults = Settings()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all")
    parser.add_argument("--rows", type=int, default=defaults.rows)
    parser.add_argument("--repeats", type=int, default=defaults.repeats)
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(NAMES):
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; there are {NAMES}")

    settings = Settings(asked.rows, asked.repeats, asked.seed)
    print(machine())
    tables = []
    for name in asked.names or NAMES:
        table = importlib.import_module(f"benchmarks.{name}").run(settings)
        print(f"\n{table.to_text()}", flush=True)
        tables.append(table.to_dict())
    if asked.json:
        content = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "benchmarks": tables}
        asked.json.write_text(json.dumps(content, indent=2), "utf-8")


if __name__ == "__main__":
    main()
