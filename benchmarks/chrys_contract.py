"""The same command under both contracts, through a real daemon: what the files of the Chrys contract cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from types import MappingProxyType

from benchmarks.measure import Figure, interleaved
from benchmarks.whole_hook import Connection, Daemon, median_us


ROUNDS = 9
YAML = """\
version: 1
hooks:
  - id: same
    event: before_tool_call
    match: {tool_name: run_shell}
    run: {type: command, argv: [/bin/bash, -c, "cat </dev/null"]}
    execution: {mode: blocking}
"""
BAMBOO = {
    "lifecycle_hooks": {
        "enabled": True,
        "PreToolUse": [{"hooks": [{"type": "command", "command": "cat </dev/null"}]}],
    }
}
TOOL = {"name": "run_shell", "kind": "shell", "call_id": "c1", "args": {"command": "x" * 700}}


class ChrysConnection(Connection):
    """A client that speaks as a Chrys agent does."""

    agent = "chrys"
    event = "before_tool_call"
    payload: Mapping[str, object] = MappingProxyType({"tool": TOOL})


def run() -> Iterator[Figure]:
    """One figure."""
    with ExitStack() as stack:
        daemon = Daemon(stack, bamboo=BAMBOO, chrys=YAML)
        bamboo = stack.enter_context(closing(Connection(daemon.path, "bamboo")))
        chrys = stack.enter_context(closing(ChrysConnection(daemon.path, "chrys")))
        rounds = interleaved(
            ROUNDS, {"chrys": lambda: median_us(chrys.dispatch), "bamboo": lambda: median_us(bamboo.dispatch)}
        )
    note = f"{rounds.median('chrys'):.0f} us; {rounds.median('bamboo'):.0f}"
    yield Figure(
        "a Chrys hook / the same command by the Bamboo contract",
        rounds.ratio("chrys", "bamboo"),
        "<= 1.25",
        note,
    )
