"""`hooksd outbox`: look at durable jobs, have them tried again, give them up."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from hooksd.cli import render
from hooksd.cli.daemon_session import add_daemon_arguments, connected, fail, terminal
from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.terminal import Terminal, safe
from hooksd_client import Client


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]

NAME = "outbox"
HELP = "look at the jobs of durable hooks, try them again, or give them up"
EXAMPLES = """\
examples:
  hooksd outbox list                         what is not done: waiting, running, failed
  hooksd outbox list --state failed          the dead letters, with reason and the end of stderr
  hooksd outbox retry job-1a22d9aa2ed00001   start one again, also before its time
  hooksd outbox retry --all                  start every one that has failed again
  hooksd outbox discard --state failed       give them up
"""

_STATES = ("pending", "running", "done", "failed")
_OPEN = ("running", "pending", "failed")
_STYLES = {"done": "green", "failed": "bold red", "pending": "yellow", "running": "cyan"}
_PAGE = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `outbox`."""
    parser.add_argument("action", choices=("list", "retry", "discard"), help="what to do")
    parser.add_argument("job", metavar="JOB", nargs="?", help="retry, discard: the id that `list` shows")
    parser.add_argument("--state", choices=_STATES, help="list, discard: only jobs in this state")
    parser.add_argument("--all", action="store_true", help="retry: every job that has failed")
    parser.add_argument(
        "-n", type=int, default=100, metavar="N", dest="count", help="list: the first N (default: 100)"
    )
    add_daemon_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Do it; 1 where there was nothing to retry or discard."""
    if args.action == "list":
        _refuse(args, job=args.job is not None, all=args.all)
        return _list(args)
    if args.action == "retry":
        _refuse(args, state=args.state is not None)
        if (args.job is None) is not args.all:
            fail(ExitCode.USAGE, "outbox retry takes the id of a job, or --all")
        with connected(args) as client:
            count = client.retry_jobs(args.job)
        return _told(args, "retried", count, "to be started again")
    _refuse(args, all=args.all)
    if (args.job is None) is (args.state is None):
        fail(ExitCode.USAGE, "outbox discard takes the id of a job, or --state")
    with connected(args) as client:
        count = client.discard_jobs(args.job, state=args.state)
    return _told(args, "discarded", count, "given up")


def _refuse(args: argparse.Namespace, **given: bool) -> None:
    for name, is_given in given.items():
        if is_given:
            what = "job" if name == "job" else f"--{name}"
            fail(ExitCode.USAGE, f"outbox {args.action} takes no {what}; see `hooksd outbox -h`")


def _told(args: argparse.Namespace, key: str, count: int, what: str) -> int:
    speaker = terminal()
    if args.json:
        speaker.json({key: count})
    else:
        speaker.line(f"{count} job{'' if count == 1 else 's'} {what}")
    return ExitCode.DONE if count else ExitCode.NO


def _list(args: argparse.Namespace) -> int:
    speaker = terminal()
    states = _OPEN if args.state is None else (args.state,)
    with connected(args) as client:
        found = [job for state in states for job in _jobs(client, state, args.count)]
        counts: Mapping[str, Any] = client.call("daemon/status").get("outbox") or {}
    found.sort(key=lambda job: str(job.get("job_id")))
    found = found[: max(args.count, 0)]
    if args.json:
        speaker.json({"jobs": found, "counts": dict(counts)})
        return ExitCode.DONE
    for job in found:
        _show(speaker, job)
    told = ", ".join(f"{counts.get(state, 0)} {state}" for state in _OPEN)
    speaker.line(speaker.style(f"in all: {told}", "dim"))
    return ExitCode.DONE


def _jobs(client: Client, state: str, count: int) -> Iterator[Mapping[str, Any]]:
    after: str | None = None
    while count > 0:
        params: dict[str, Any] = {"state": state, "limit": min(count, _PAGE)}
        if after is not None:
            params["after"] = after
        jobs = client.call("outbox/list", params, repeatable=True)["jobs"]
        yield from jobs
        if len(jobs) < params["limit"]:
            return
        count -= len(jobs)
        after = jobs[-1]["job_id"]


def _show(speaker: Terminal, job: Mapping[str, Any]) -> None:
    state = str(job.get("state"))
    speaker.line(
        f"{speaker.style(f'{state:<8}', _STYLES.get(state, ''))} {safe(job.get('job_id'))}  "
        f"{safe(job.get('hook'))}  {safe(job.get('event'))}"
    )
    facts = [
        f"from {_when(job.get('created_at'))}",
        f"started {job.get('attempts')} of {job.get('max_attempts')} times",
    ]
    if job.get("next_attempt_at") is not None and not job.get("waiting"):
        facts.append(f"next at {_when(job['next_attempt_at'])}")
    if job.get("ended_at") is not None:
        facts.append(f"ended {_when(job['ended_at'])}")
    speaker.line(f"         {speaker.style(', '.join(facts), 'dim')}")
    for name in ("waiting", "last_error"):
        if job.get(name):
            speaker.line(f"         {speaker.style(name.replace('_', ' '), 'yellow')}: {safe(job[name])}")
    if job.get("stderr_tail"):
        render.quoted(speaker, str(job["stderr_tail"]), indent="         ", most_lines=10)


def _when(seconds: Any) -> str:
    return datetime.fromtimestamp(float(seconds)).astimezone().strftime("%Y-%m-%d %H:%M:%S")
