"""`python -m benchmarks [SUBJECT…]`: find the subjects in this directory, measure, print figures beside their goals.

A subject is a module here with a function `run()` that gives `Figure`s (see `measure.py`). Nothing is registered.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import benchmarks
from benchmarks.measure import Figure, NotMeasured


def subjects() -> dict[str, Callable[[], Iterable[Figure]]]:
    """Every module beside this one that has a `run`, by name."""
    found = {}
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.name == "__main__":
            continue
        loaded = importlib.import_module(f"benchmarks.{module.name}")
        if hasattr(loaded, "run"):
            found[module.name] = loaded.run
    return found


def show(figure: Figure) -> str:
    """One line: verdict, name, value, goal, note."""
    verdict = {True: "ok    ", False: "MISSED", None: "      "}[figure.met]
    value = f"{figure.value:,.0f}" if abs(figure.value) >= 1000 else f"{figure.value:.3g}"
    return f"  {verdict} {figure.name:<64} {value:>9}  {figure.goal or '':<8} {figure.note}".rstrip()


def main() -> int:
    """Measure the named subjects, or all. Exit code 1 when a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("subject", nargs="*", help="a module of this directory; default: all")
    parser.add_argument("--list", action="store_true", help="list the subjects and do nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    arguments = parser.parse_args()
    known = subjects()
    if arguments.list:
        print("\n".join(known))
        return 0
    if unknown := [name for name in arguments.subject if name not in known]:
        parser.error(f"no such subject: {', '.join(unknown)} (there are: {', '.join(known)})")
    missed = 0
    told: dict[str, list[dict[str, object]]] = {}
    for name in arguments.subject or known:
        began = time.monotonic()
        print(f"{name}", flush=True)
        try:
            for figure in known[name]():
                print(show(figure), flush=True)
                missed += figure.met is False
                told.setdefault(name, []).append({**figure._asdict(), "met": figure.met})
        except NotMeasured as reason:
            print(f"         not measured: {reason}")
        print(f"         ({time.monotonic() - began:.0f} s)", flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(told, indent=1) + "\n")
    if missed:
        print(f"{missed} goal(s) missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
