"""What recent invocations said in their own words, for `hook/result`. In memory only, bounded in number and size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import msgspec

from hooksd.model.fold import Verdict
from hooksd.model.report import HandlerReport
from hooksd.pipeline.invocation import Invocation
from hooksd.protocol.errors import ErrorCode, protocol_error
from hooksd.protocol.methods.hooks import HookPlace, HookResultResult


__all__ = ["MAX_RESULT_BYTES", "Results"]

MAX_RESULT_BYTES = 16_384
"""Kept of one invocation, about (protocol section 2.3)."""

_MAX_TEXT_BYTES = 2_048
_MAX_ARGUMENTS_BYTES = 2_048
_MAX_LINE_BYTES = 1_024
_MAX_NAMES_BYTES = 2_048
_MAX_NAMES = 512
"""Names are shared with the environment they come from, so what is kept of them is a reference each."""
_REPORT_BYTES = 1_024
"""Of a report without its detail, amply."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept, cut to size; put into words only when somebody asks, which is seldom.

    Arguments as JSON: it tells their size, and a later change of the objects does not change what is shown.
    """

    report: HandlerReport
    reason: str | None
    contexts: tuple[str, ...]
    before: bytes | None
    after: bytes | None
    stdout: bytes
    stderr: bytes
    command: tuple[str, ...]
    cwd: str
    environment: tuple[str, ...]
    source: HookPlace


class Results:
    """The last invocations. `limit` gives `limits.kept_results` as it is now."""

    __slots__ = ("_kept", "_limit")

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def keep(
        self,
        invocation: Invocation,
        report: HandlerReport,
        verdict: Verdict,
        arguments_after: dict[str, Any] | None,
    ) -> None:
        """Remember an invocation, and forget the oldest ones over the limit.

        Args:
            invocation: What ran.
            report: As in the answer.
            verdict: What the fold said.
            arguments_after: The tool's full arguments, if this hook changed them.
        """
        limit = self._limit()
        if limit:
            self._kept[report.invocation_id] = _kept(invocation, report, verdict, arguments_after)
        while len(self._kept) > limit:
            self._kept.popitem(last=False)

    def get(self, invocation_id: str) -> HookResultResult:
        """What one invocation said.

        Raises:
            ProtocolError: -32602, it is not known, or no longer.
        """
        kept = self._kept.get(invocation_id)
        if kept is None:
            raise protocol_error(
                ErrorCode.INVALID_PARAMS,
                f"nothing is known of the invocation {invocation_id!r}; "
                f"the last {self._limit()} are kept (limits.kept_results)",
                kind="unknown_invocation",
            )
        return HookResultResult(
            report=kept.report,
            reason=kept.reason,
            contexts=kept.contexts,
            arguments_before=None if kept.before is None else msgspec.json.decode(kept.before),
            arguments_after=None if kept.after is None else msgspec.json.decode(kept.after),
            stdout=kept.stdout.decode(errors="replace"),
            stderr=kept.stderr.decode(errors="replace"),
            command=kept.command,
            cwd=kept.cwd,
            environment=tuple(_within(sorted(kept.environment), _MAX_NAMES_BYTES)),
            source=kept.source,
        )


def _kept(
    invocation: Invocation,
    report: HandlerReport,
    verdict: Verdict,
    arguments_after: dict[str, Any] | None,
) -> _Kept:
    hook, result = invocation.planned.hook, invocation.result
    before = after = None
    if arguments_after is not None:
        before, after = _arguments(invocation.event.tool_arguments), _arguments(arguments_after)
    reason = None if verdict.reason is None else _clipped(verdict.reason, _MAX_TEXT_BYTES)
    contexts = tuple(_within(invocation.reply.contexts, _MAX_TEXT_BYTES))
    command = tuple(_within(invocation.command, _MAX_LINE_BYTES))
    cwd = _clipped(invocation.cwd, _MAX_LINE_BYTES)
    stdout, stderr = (b"", b"") if result is None else (result.stdout, result.stderr)
    texts = (reason or "", *contexts, *command, cwd, (report.problem and report.problem.detail) or "")
    room = MAX_RESULT_BYTES - _REPORT_BYTES - _MAX_NAMES_BYTES - len(before or b"") - len(after or b"")
    room -= sum(len(text.encode(errors="replace")) for text in texts)
    # The streams share what the rest leaves, and a short one leaves more to the other.
    of_stdout = max(room // 2, room - len(stderr))
    return _Kept(
        report=report,
        reason=reason,
        contexts=contexts,
        before=before,
        after=after,
        stdout=stdout[:of_stdout],
        stderr=stderr[: room - min(of_stdout, len(stdout))],
        command=command,
        cwd=cwd,
        environment=invocation.environment[:_MAX_NAMES],
        source=HookPlace(path=hook.file, line=hook.line),
    )


def _arguments(arguments: Any) -> bytes | None:
    """The arguments as JSON, if they are an object that is not too large to be kept."""
    if not isinstance(arguments, dict):
        return None
    data = msgspec.json.encode(arguments)
    return data if len(data) <= _MAX_ARGUMENTS_BYTES else None


def _clipped(text: str, limit_bytes: int) -> str:
    data = text.encode(errors="replace")
    return text if len(data) <= limit_bytes else data[:limit_bytes].decode(errors="ignore")


def _within(texts: tuple[str, ...] | list[str], limit_bytes: int) -> list[str]:
    """The texts from the first one on, cut where the limit is reached."""
    kept: list[str] = []
    left = limit_bytes
    for text in texts:
        if left <= 0:
            break
        kept.append(_clipped(text, left))
        left -= len(text.encode(errors="replace"))
    return kept
