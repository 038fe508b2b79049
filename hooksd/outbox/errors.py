"""What the outbox cannot do, as exceptions. Nobody's hook stays away because of one: it then runs without a net."""

from __future__ import annotations

from hooksd.model.errors import HooksdError


__all__ = ["JobBusy", "NoSuchJob", "OutboxClosed", "OutboxError", "OutboxFull", "OutboxUnusable"]


class OutboxError(HooksdError):
    """Root of the errors of this room."""


class OutboxUnusable(OutboxError):
    """The database cannot be opened, read or written; `reason` says why, `hint` what to do."""

    def __init__(self, path: str, reason: str, hint: str) -> None:
        self.path = path
        self.reason = reason
        self.hint = hint
        super().__init__(f"the outbox {path} cannot be used: {reason}")


class OutboxFull(OutboxError):
    """It holds as many jobs, or bytes, as it may."""

    def __init__(self, limit: str, value: int) -> None:
        self.limit = limit
        self.value = value
        self.hint = (
            "see `hooksd outbox list`; retry or discard what is there, or raise the limit in hooksd.toml"
        )
        super().__init__(f"the outbox is full: {limit} is {value}")


class OutboxClosed(OutboxError):
    """The daemon is at its end."""

    def __init__(self) -> None:
        self.hint = None
        super().__init__("the outbox is closed")


class NoSuchJob(OutboxError):
    """There is no job of this name, or no longer."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        super().__init__(f"there is no job {job_id[:64]!r}")


class JobBusy(OutboxError):
    """What is asked of a job cannot be done where it stands."""

    def __init__(self, job_id: str, reason: str) -> None:
        self.job_id = job_id
        super().__init__(f"{job_id}: {reason}")
