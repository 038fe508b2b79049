"""The rules that fold the replies of a plan into one outcome.

Everything that decides what comes next, what a reply does and what it all comes to lives in this file: order, short
circuit, guards, rewrites, what the caller cannot carry out. It runs nothing and waits for nothing: the pipeline asks
for the next step, carries it out, and hands the reply back.

The rules, in short (design.md, "Order of a plan" and rules 2 and 10; Bamboo dialect 2.3 and 2.4):

- On a gate the first block ends the whole plan. An ask ends only the part of its own source; later sources and every
  guarded hook still run. Block beats ask, ask beats allow, allow beats none; among equals the first in plan order.
- On an observer every hook runs and decisions are ignored, which the report says.
- Contexts and reminders accumulate in plan order, those of the deciding hook included.
- A hook that fails closed turns every way of not giving a valid answer into a block.
- What the caller cannot carry out becomes something stricter or is dropped with a problem, never silently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from hooksd.model.decision import Capability, Decision
from hooksd.model.events import Event, EventName
from hooksd.model.hooks import Contract, Guard, GuardAction, Hook, OnError
from hooksd.model.outcome import Continuation, Outcome
from hooksd.model.problems import DispatchProblem, HookProblem, ProblemKind
from hooksd.model.records import Level
from hooksd.model.reply import MAX_DETAIL_BYTES, Reply
from hooksd.model.report import HandlerReport, Status


__all__ = ["Fold", "Planned", "Step", "Verdict"]


class Planned(Protocol):
    """A hook in a plan, and the strictest guard that applies to it for the plan's event."""

    @property
    def hook(self) -> Hook:
        """The hook."""
        ...

    @property
    def guard(self) -> Guard | None:
        """The guard; one without `events` counts on gates only."""
        ...


P = TypeVar("P", bound=Planned)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook's report says besides the facts of its process.

    Attributes:
        status: How its run ended.
        decision: What it said, or what stricter decision was made of it. On an observer, and where the caller cannot
            carry it out, what it said; the problem then tells that it had no effect.
        problem: What made it fail, or the first note of a run that did not; further ones follow in its `detail`.
        reason: Of a block, None otherwise.
        level: How much the record of it matters.
    """

    status: Status
    decision: Decision = Decision.NONE
    problem: HookProblem | None = None
    reason: str | None = None
    level: Level = Level.INFO


class Step(msgspec.Struct, Generic[P], frozen=True, kw_only=True):
    """The next hook of the plan.

    Attributes:
        planned: The hook.
        verdict: Set when it does not run: the report is then complete. None: run it. A blocking hook's reply must be
            given to `Fold.add` before the next step is asked for; of a background hook nothing is awaited.
    """

    planned: P
    verdict: Verdict | None = None


class _Bar(msgspec.Struct, frozen=True, kw_only=True):
    """Why no further hook may run: `everyone` blocks on a gate, or only those that fail closed."""

    kind: ProblemKind
    message: str
    hint: str | None = None
    everyone: bool = False


_STATUS = {
    ProblemKind.TIMEOUT: Status.TIMEOUT,
    ProblemKind.LAUNCH: Status.LAUNCH_ERROR,
    ProblemKind.MISSING_SCRIPT: Status.LAUNCH_ERROR,
    ProblemKind.MISSING_RUNTIME: Status.LAUNCH_ERROR,
    ProblemKind.MISSING_CWD: Status.LAUNCH_ERROR,
    ProblemKind.CANCELLED: Status.CANCELLED,
    ProblemKind.NOT_RUN: Status.SKIPPED,
    ProblemKind.TOO_DEEP: Status.SKIPPED,
    ProblemKind.UNTRUSTED: Status.SKIPPED,
    ProblemKind.CHANGED: Status.SKIPPED,
}
"""The status of a failure by its kind; every other kind is `failed`."""

_BAD_ANSWERS = frozenset(
    {
        ProblemKind.MALFORMED_OUTPUT,
        ProblemKind.TRUNCATED_OUTPUT,
        ProblemKind.UNKNOWN_DECISION,
        ProblemKind.OVERSIZE_RESULT,
    }
)
"""Failures of a hook that ran well, and answered what cannot be understood."""

_RANK = {Decision.NONE: 0, Decision.ALLOW: 1, Decision.ASK: 2, Decision.BLOCK: 3}


class Fold(Generic[P]):
    """One pass over a plan.

    Call `next` until it gives None; carry out each step that has no verdict; give the reply of each blocking hook to
    `add`; then take the `outcome`. After each `add` later hooks must get the event with `arguments`, if those are set.
    """

    __slots__ = (
        "_accepts",
        "_asked",
        "_bar",
        "_claim",
        "_contexts",
        "_continuation",
        "_current",
        "_decided_by",
        "_decision",
        "_ended",
        "_event",
        "_plan",
        "_position",
        "_problems",
        "_reason",
        "_reminders",
        "arguments",
    )

    arguments: dict[str, Any] | None
    """The tool's full arguments as hooks have changed them so far; None while they are what the caller sent."""

    def __init__(
        self,
        event: Event,
        plan: Sequence[P],
        *,
        accepts: frozenset[Capability],
        missing: Iterable[Guard] = (),
        claim: Callable[[], Continuation] | None = None,
    ) -> None:
        """Begin.

        Args:
            event: The event as the caller sent it.
            plan: The matching hooks in run order, blocking ones first; one that did not load is there only if guarded.
            accepts: What the caller can carry out.
            missing: Guards whose pattern no hook answers to, and that block then.
            claim: Counts one forced continuation and tells the state; one that is `exhausted` is not carried out.
                Called at most once, for the block that ends a `turn.finish`. None: continuations are unlimited.
        """
        self.arguments = None
        self._event = event
        self._plan = plan
        self._position = 0
        self._accepts = accepts
        self._claim = claim
        self._continuation: Continuation | None = None
        self._decision = Decision.NONE
        self._decided_by: str | None = None
        self._reason: str | None = None
        self._contexts: list[str] = []
        self._reminders: list[str] = []
        self._current = event.tool_arguments
        self._problems: list[DispatchProblem] = []
        self._asked: dict[tuple[str, str], str] = {}
        self._ended: str | None = None
        self._bar: _Bar | None = None
        for guard in missing:
            self._add_missing(guard)

    # ------------------------------------------------------------------------------------------------------------------
    # Driving

    @property
    def coming(self) -> P | None:
        """The hook that `next` is going to be about; None at the end of the plan."""
        return None if self._position == len(self._plan) else self._plan[self._position]

    def leave_out(self) -> None:
        """The coming hook is not for the event as it is now: go on as if it were not in the plan."""
        self._position += 1

    def next(self) -> Step[P] | None:
        """The next hook, to be run or already judged; None at the end of the plan."""
        if self._position == len(self._plan):
            return None
        planned = self._plan[self._position]
        self._position += 1
        return Step(planned=planned, verdict=self._without_run(planned))

    def rest(self) -> Sequence[P]:
        """The hooks that `next` would still give; for a dispatch that is cut off, where nothing more is judged."""
        return self._plan[self._position :]

    def expire(self, message: str) -> None:
        """Nothing further runs because the dispatch's budget is spent; hooks that fail closed then block."""
        self._bar = _Bar(kind=ProblemKind.NOT_RUN, message=message)

    def refuse(self, kind: ProblemKind, message: str, hint: str | None = None) -> None:
        """Nothing further runs, and on a gate that is a block, whatever the hooks' own rules say."""
        self._bar = _Bar(kind=kind, message=message, hint=hint, everyone=True)

    def tell(self, kind: ProblemKind, message: str, hint: str | None = None) -> None:
        """Add a problem that belongs to no hook; it decides nothing."""
        self._problems.append(DispatchProblem(kind=kind, message=message, hint=hint))

    def add(self, planned: P, reply: Reply) -> Verdict:
        """Take in what a hook said, and say what its report tells."""
        notes = list(reply.notes)
        said, reason = reply.decision, reply.reason
        if reply.failure is not None and said is not Decision.BLOCK:
            closed_by = self._fails_closed(planned, reply.failure)
            if closed_by is not None:
                said, reason = Decision.BLOCK, _failure_reason(planned.hook, reply.failure, closed_by)
        self._keep(self._contexts, Capability.CONTEXTS, reply.contexts, notes)
        self._keep(self._reminders, Capability.REMINDERS, reply.reminders, notes)
        if reply.arguments is not None or reply.arguments_patch is not None:
            said, reason = self._rewrite(planned.hook, reply, said, reason, notes)
        said, reason, effective = self._effective(planned.hook, said, reason, notes)
        if effective is Decision.BLOCK:
            reason = reason if reason is not None and reason.strip() else f"blocked by {planned.hook.name}"
            self._block(planned.hook.name, reason, notes)
        elif _RANK[effective] > _RANK[self._decision]:
            self._decision, self._decided_by = effective, planned.hook.name
        if effective is Decision.ASK:
            self._asked.setdefault(_part(planned.hook), planned.hook.name)
        verdict = _verdict(reply.failure, notes, said, effective, reason)
        if planned.hook.on_error is OnError.IGNORE and effective is Decision.NONE:
            return msgspec.structs.replace(verdict, level=Level.INFO)
        return verdict

    def outcome(self, handlers: Iterable[HandlerReport], revision: int) -> Outcome:
        """What it all comes to, once `next` has given None."""
        blocked = self._decision is Decision.BLOCK
        exhausted = self._continuation is not None and self._continuation.exhausted
        if exhausted:
            return Outcome(
                event=self._event.native,
                continuation=self._continuation,
                revision=revision,
                handlers=tuple(handlers),
                problems=tuple(self._problems),
            )
        return Outcome(
            event=self._event.native,
            decision=self._decision,
            reason=self._reason,
            decided_by=self._decided_by,
            contexts=tuple(self._contexts),
            reminders=tuple(self._reminders),
            arguments=None if blocked else self._changed_arguments(),
            continuation=self._continuation,
            revision=revision,
            handlers=tuple(handlers),
            problems=tuple(self._problems),
        )

    def _changed_arguments(self) -> dict[str, Any] | None:
        if self.arguments is None:
            return None
        # As JSON, because to Python 1, 1.0 and true are equal, and a rewrite of one to the other must not get lost.
        before, after = (
            msgspec.json.encode(arguments, order="sorted")
            for arguments in (self._event.tool_arguments, self.arguments)
        )
        return None if before == after else self.arguments

    @property
    def problems(self) -> tuple[DispatchProblem, ...]:
        """What belongs to no hook of the plan, such as guards whose hook is missing."""
        return tuple(self._problems)

    # ------------------------------------------------------------------------------------------------------------------
    # Before a run

    def _without_run(self, planned: P) -> Verdict | None:
        """The verdict on a hook that does not run; None when it does."""
        hook = planned.hook
        if self._ended is not None:
            return _skipped(f"not run: {self._ended}")
        if self._bar is not None:
            return self._barred(planned, self._bar)
        asked_by = self._asked.get(_part(hook))
        if asked_by is not None and not _is_guarded(planned, self._event):
            return _skipped(f"not run: {asked_by} asked, which ends the part of its source")
        if hook.load_problem is not None:
            return self.add(planned, Reply(failure=_not_loaded(hook)))
        return None

    def _barred(self, planned: P, bar: _Bar) -> Verdict:
        problem = HookProblem(kind=bar.kind, message=bar.message, hint=bar.hint)
        if bar.everyone and self._event.gate:
            reason = f"{planned.hook.name} could not be run ({bar.kind}: {bar.message})"
            return self.add(planned, Reply(decision=Decision.BLOCK, reason=reason, failure=problem))
        return self.add(planned, Reply(failure=problem))

    def _add_missing(self, guard: Guard) -> None:
        message = f"a guard names {guard.hooks!r}, but no hook has a name like that"
        hint = "correct the pattern of this [[guard]] in hooksd.toml, or see why the hook is gone with `hooksd explain`"
        kind = ProblemKind.NO_SUCH_HOOK
        self._problems.append(DispatchProblem(kind=kind, message=message, hint=hint, hook=guard.hooks))
        if not self._event.gate or self._ended is not None:
            return
        notes: list[HookProblem] = []
        if self._can_block(notes):
            self._block(None, f"{message}, and the guard makes that a block", notes)
        self._problems += [DispatchProblem(kind=n.kind, message=n.message, hook=guard.hooks) for n in notes]

    # ------------------------------------------------------------------------------------------------------------------
    # What a reply does

    def _fails_closed(self, planned: P, failure: HookProblem) -> str | None:
        """What makes a failure of this hook a block, in words; None when nothing does."""
        if planned.hook.on_error is OnError.BLOCK:
            if planned.hook.contract is Contract.PROGRAMMATIC:
                return "its own `on_failure`"
            # Chrys' `on_error` is about the run of a hook, not about what it wrote (Chrys dialect 9, 3).
            if failure.kind not in _BAD_ANSWERS:
                return "its own `on_error`"
        return "a guard" if _is_guarded(planned, self._event) else None

    def _keep(
        self, kept: list[str], capability: Capability, texts: Sequence[str], notes: list[HookProblem]
    ) -> None:
        said = [text for text in texts if text.strip()]
        if not said:
            return
        if capability in self._accepts:
            kept += said
        else:
            message = f"{self._event.agent} cannot take {capability} on this event; {len(said)} dropped"
            notes.append(HookProblem(kind=ProblemKind.NOT_APPLICABLE, message=message))

    def _rewrite(
        self, hook: Hook, reply: Reply, said: Decision, reason: str | None, notes: list[HookProblem]
    ) -> tuple[Decision, str | None]:
        """Lay changed arguments over the current ones, or make something stricter of it (design rule 10)."""
        if self._event.name is not EventName.TOOL_BEFORE:
            message = f"changed arguments mean nothing on {self._event.native}; they were dropped"
            notes.append(HookProblem(kind=ProblemKind.NOT_APPLICABLE, message=message))
            return said, reason
        current = self._current if reply.arguments is None else reply.arguments
        if Capability.ARGUMENTS not in self._accepts:
            obstacle = f"{self._event.agent} cannot apply changed arguments"
        elif reply.arguments_patch is not None and not isinstance(current, dict):
            obstacle = "the tool's arguments are no object, so nothing can be laid over them"
        else:
            self._current = {**current, **(reply.arguments_patch or {})}
            self.arguments = self._current
            return said, reason
        notes.append(
            HookProblem(
                kind=ProblemKind.NOT_APPLICABLE,
                message=f"{obstacle}; they were dropped",
                hint="let the hook block instead of changing arguments, or use an agent that can apply them",
            )
        )
        if not self._event.gate or _RANK[said] >= _RANK[Decision.ASK]:
            return said, reason
        if Capability.ASK in self._accepts:
            return Decision.ASK, None
        return Decision.BLOCK, f"{hook.name} changed the tool's arguments, but {obstacle}"

    def _effective(
        self, hook: Hook, said: Decision, reason: str | None, notes: list[HookProblem]
    ) -> tuple[Decision, str | None, Decision]:
        """What the report says, the reason, and what counts for the outcome."""
        if said is Decision.NONE:
            return said, None, said
        if not self._event.gate:
            message = f"{self._event.native} cannot be stopped, so `{said}` has no effect"
            notes.append(HookProblem(kind=ProblemKind.IGNORED_DECISION, message=message))
            return said, reason, Decision.NONE
        if said is Decision.ASK and Capability.ASK not in self._accepts:
            message = f"{self._event.agent} cannot ask, so `ask` counts as `block`"
            notes.append(HookProblem(kind=ProblemKind.NOT_APPLICABLE, message=message))
            said, reason = (
                Decision.BLOCK,
                f"{hook.name} wants this to be confirmed, but {self._event.agent} cannot ask",
            )
        if said is Decision.ALLOW and Capability.ALLOW not in self._accepts:
            message = f"{self._event.agent} cannot skip its own rules, so `allow` counts as no decision"
            notes.append(HookProblem(kind=ProblemKind.NOT_APPLICABLE, message=message))
            return said, None, Decision.NONE
        if said is Decision.BLOCK and not self._can_block(notes):
            return said, reason, Decision.NONE
        return said, reason, said

    def _can_block(self, notes: list[HookProblem]) -> bool:
        if self._event.name is not EventName.TURN_FINISH or Capability.CONTINUATION in self._accepts:
            return True
        message = (
            f"{self._event.agent} cannot be made to go on, so `block` has no effect on {self._event.native}"
        )
        notes.append(HookProblem(kind=ProblemKind.NOT_APPLICABLE, message=message))
        return False

    def _block(self, name: str | None, reason: str, notes: list[HookProblem]) -> None:
        self._decision, self._decided_by, self._reason = Decision.BLOCK, name, reason
        self._ended = f"{name} blocked" if name is not None else "a guard's hook is missing"
        if self._event.name is EventName.TURN_FINISH and self._claim is not None:
            self._continuation = self._claim()
            if self._continuation.exhausted:
                message = f"the limit of {self._continuation.limit} forced continuations is reached, so the turn ends anyway"
                hint = "`limits.stop_continuations` in hooksd.toml"
                notes.append(HookProblem(kind=ProblemKind.IGNORED_DECISION, message=message, hint=hint))


# ----------------------------------------------------------------------------------------------------------------------


def _is_guarded(planned: Planned, event: Event) -> bool:
    """Whether the hook must give an answer: by a guard, or programmatic with `on_failure = "block"`."""
    if planned.hook.contract is Contract.PROGRAMMATIC and planned.hook.on_error is OnError.BLOCK:
        return True
    guard = planned.guard
    return guard is not None and guard.on_failure is GuardAction.BLOCK and (bool(guard.events) or event.gate)


def _part(hook: Hook) -> tuple[str, str]:
    """What an ask ends: the hooks of one source. A client may be called like a source, hence the scope."""
    return hook.scope, hook.source


def _not_loaded(hook: Hook) -> HookProblem:
    problem = hook.load_problem
    told = problem.describe() if problem is not None else ""
    return HookProblem(
        kind=ProblemKind.NOT_LOADED,
        message=f"this hook could not be loaded: {told}",
        hint="`hooksd validate` shows all problems of the file",
    )


def _failure_reason(hook: Hook, failure: HookProblem, closed_by: str) -> str:
    return f"{hook.name} gave no valid answer ({failure.kind}: {failure.message}); {closed_by} makes that a block"


def _skipped(message: str) -> Verdict:
    return Verdict(status=Status.SKIPPED, problem=HookProblem(kind=ProblemKind.NOT_RUN, message=message))


def _verdict(
    failure: HookProblem | None,
    notes: list[HookProblem],
    said: Decision,
    effective: Decision,
    reason: str | None,
) -> Verdict:
    problem = _joined([*([failure] if failure is not None else []), *notes])
    if failure is not None:
        status = _STATUS.get(failure.kind, Status.FAILED)
    elif effective is Decision.BLOCK:
        status = Status.BLOCKED
    else:
        status = Status.OK
    return Verdict(
        status=status,
        decision=said,
        problem=problem,
        reason=reason if said is Decision.BLOCK else None,
        level=Level.INFO if problem is None else Level.WARNING,
    )


def _joined(problems: list[HookProblem]) -> HookProblem | None:
    """The first problem, with the kinds and messages of the others in its detail (protocol section 2.3)."""
    if not problems:
        return None
    first, *others = problems
    if not others:
        return first
    further = "\n".join(f"{other.kind}: {other.message}" for other in others)
    if first.detail:
        # The further kinds are short and ours; what must give way to the limit is the end of the hook's own words.
        room = max(0, MAX_DETAIL_BYTES - len(further.encode()) - 1)
        further = f"{_clipped(first.detail, room)}\n{further}"
    return msgspec.structs.replace(first, detail=_clipped(further, MAX_DETAIL_BYTES))


def _clipped(text: str, limit_bytes: int) -> str:
    data = text.encode(errors="replace")
    return text if len(data) <= limit_bytes else data[:limit_bytes].decode(errors="ignore")
