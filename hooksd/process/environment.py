"""The environment of a hook (protocol section 5): what is taken away, what is added, and in which order.

Pure. What belongs to a contract (Bamboo's and Chrys' own variables) is told by the dialect and only laid over here.

Beyond the list of protocol section 5, three things of the caller's environment are taken away because they change what
a shell does before it comes to the hook's own first line, just as `BASH_ENV` does: exported bash functions
(`BASH_FUNC_*`, which may stand in for any command that a hook uses), and the exported option lists `SHELLOPTS` and
`BASHOPTS`. A hook's own `env` may set any of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from hooksd.model.star_patterns import StarPatterns


__all__ = ["MARK", "EnvironmentRules", "Marks", "hook_environment"]

MARK = "HOOKSD_INVOCATION_ID"
"""The variable by which the descendants of a hook are known."""

SERVICE_VARIABLES = frozenset(
    {
        "INVOCATION_ID",
        "JOURNAL_STREAM",
        "MAINPID",
        "MANAGERPID",
        "MANAGERPIDFDID",
        "MEMORY_PRESSURE_WATCH",
        "MEMORY_PRESSURE_WRITE",
        "NOTIFY_SOCKET",
        "SYSTEMD_EXEC_PID",
        # Set by RuntimeDirectory= and its like: they name directories of the daemon, not of the hook.
        "CACHE_DIRECTORY",
        "CONFIGURATION_DIRECTORY",
        "CREDENTIALS_DIRECTORY",
        "LOGS_DIRECTORY",
        "RUNTIME_DIRECTORY",
        "STATE_DIRECTORY",
    }
)
"""What a service manager tells the daemon about itself: a hook that took it for its own would talk to the manager."""

SERVICE_PREFIXES = ("LISTEN_", "WATCHDOG_")

SHELL_START_UP = frozenset({"BASHOPTS", "BASH_ENV", "ENV", "SHELLOPTS"})
SHELL_START_UP_PREFIXES = ("BASH_FUNC_",)

DAEMON_PYTHON = frozenset({"PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV"})
"""Right for the interpreter that the daemon runs on, wrong for any other; a caller's own are meant for its hooks."""

DAEMON_TRACE = frozenset({"TRACEPARENT", "TRACESTATE"})
"""Those of the daemon's own environment belong to whatever started the daemon."""

MAX_CACHED_BASES = 64
"""Cleaned bases kept by one `EnvironmentRules`: agents that run at the same time, not executions that are open."""

_PREFIXES = SERVICE_PREFIXES + SHELL_START_UP_PREFIXES
_ALWAYS = SERVICE_VARIABLES | SHELL_START_UP
_FROM_DAEMON = _ALWAYS | DAEMON_PYTHON | DAEMON_TRACE


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """The variables that come last and that nothing overrides; those that are None are taken out instead.

    Only `traceparent` differs: None leaves what the caller's environment or the hook's own `env` says.
    """

    invocation_id: str
    execution_id: str
    socket: str | None
    depth: int
    traceparent: str | None = None


class EnvironmentRules:
    """`[env]` of `hooksd.toml`, ready for use.

    In a pattern only `*` is special; it stands for any characters. Upper and lower case are the same, because a rule
    that keeps a secret from hooks must not fail on the case of a letter. `allow_for` maps the full name of a hook to
    patterns of variables that it gets although `deny` names them.
    """

    def __init__(
        self, deny: Iterable[str] = (), allow_for: Mapping[str, Iterable[str]] | None = None
    ) -> None:
        self._deny = _folded(deny)
        self._allow_for = {hook: _folded(patterns) for hook, patterns in (allow_for or {}).items()}
        # Keyed by identity; the mapping itself is kept in the value, so that its id cannot be used again.
        self._cleaned: dict[tuple[int, bool], tuple[Mapping[str, str], dict[str, str], dict[str, str]]] = {}

    def cleaned(self, base: Mapping[str, str], *, daemon: bool, hook: str) -> dict[str, str]:
        """A fresh dictionary: the base less everything that is taken away for this hook.

        The base must never be changed in place: what it was cleaned to is remembered by its identity.
        """
        key = (id(base), daemon)
        found = self._cleaned.get(key)
        if found is None:
            if len(self._cleaned) >= MAX_CACHED_BASES:
                del self._cleaned[next(iter(self._cleaned))]
            found = self._cleaned[key] = (base, *self._clean(base, daemon=daemon))
        result = found[1].copy()
        if found[2] and (allowed := self._allow_for.get(hook)):
            for name, value in found[2].items():
                if allowed.fits(name.lower()):
                    result[name] = value
        return result

    def _clean(self, base: Mapping[str, str], *, daemon: bool) -> tuple[dict[str, str], dict[str, str]]:
        removed = _FROM_DAEMON if daemon else _ALWAYS
        kept: dict[str, str] = {}
        denied: dict[str, str] = {}
        for name, value in base.items():
            if name in removed or name.startswith(_PREFIXES):
                continue
            (denied if self._deny.fits(name.lower()) else kept)[name] = value
        return kept, denied


def hook_environment(
    base: Mapping[str, str],
    *,
    daemon: bool,
    rules: EnvironmentRules,
    hook: str,
    without: Collection[str] = (),
    contract: Iterable[tuple[str, str]] = (),
    own: Iterable[tuple[str, str]] = (),
    marks: Marks,
) -> dict[str, str]:
    """Compose the complete environment of one invocation (protocol section 5).

    Args:
        base: The execution's `env`, else the daemon's own environment. Never changed in place, here or elsewhere.
        daemon: Whether `base` is the daemon's own: then more of it is taken away.
        rules: What `hooksd.toml` denies; it applies to the base only.
        hook: The full name of the hook, for `allow_for`.
        without: Names, in upper case, that the contract takes out of the base however they are written there.
        contract: The variables of the hook's contract.
        own: The hook's own `env`.
        marks: What comes last.
    """
    result = rules.cleaned(base, daemon=daemon, hook=hook)
    if without:
        for name in [name for name in result if name.upper() in without]:
            del result[name]
    result.update(contract)
    result.update(own)
    result[MARK] = marks.invocation_id
    result["HOOKSD_EXECUTION_ID"] = marks.execution_id
    result["HOOKSD_DEPTH"] = str(marks.depth)
    if marks.socket is None:
        result.pop("HOOKSD_SOCKET", None)
    else:
        result["HOOKSD_SOCKET"] = marks.socket
    if marks.traceparent is not None:
        result["TRACEPARENT"] = marks.traceparent
    return result


def _folded(patterns: Iterable[str]) -> StarPatterns:
    return StarPatterns(pattern.lower() for pattern in patterns)
