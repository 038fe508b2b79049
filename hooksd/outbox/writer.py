"""The thread that writes: everything that waits for the disk at one moment shares one commit.

While a commit is under way, what arrives meanwhile gathers; the next commit takes all of it. One job alone is written at
once, fifty at a time cost little more than one. Here is also what becomes of a disk that is full and of a file that is
damaged. Import it off the loop: `sqlite3` takes its time.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, Protocol, TypeVar

from hooksd.outbox.database import Database, secured
from hooksd.outbox.errors import OutboxClosed, OutboxError, OutboxUnusable
from hooksd.outbox.faults import concerns_all, is_damage, set_aside, unusable
from hooksd.outbox.jobs import Counts
from hooksd.outbox.owner import Owner


__all__ = ["Listener", "Writer"]

MAX_BATCH: Final = 1_000
"""Most operations that share a commit: the first of them waits for the last."""
OWED_RETRY_S: Final = 5.0
"""How long after a failure what must not get lost is tried again."""

T = TypeVar("T")


class Listener(Protocol):
    """Who is told what happens in the thread; called on the loop."""

    def committed(self, counts: Counts) -> None:
        """There was a commit; this many jobs there are now."""
        ...

    def troubled(self, trouble: OutboxUnusable | None) -> None:
        """The database cannot be used, or (None) can be used again."""
        ...

    def damaged(self, moved_to: str) -> None:
        """The file was damaged and lies there now; a new one takes its place."""
        ...


class _Told(Generic[T]):
    """One thing to do, and who waits for it; see `Writer.post`."""

    __slots__ = ("future", "owed", "undo", "work")

    def __init__(
        self,
        work: Callable[[Database], T],
        future: asyncio.Future[T],
        *,
        owed: bool,
        undo: Callable[[Database, T], None] | None,
    ) -> None:
        self.work = work
        self.future = future
        self.owed = owed
        self.undo = undo


_Answers = list[tuple[_Told[Any], Any]]
"""What came of each: its result, or the exception that it ends with."""


class Writer:
    """The thread and its database, which is opened with the first thing to do. Made on the loop's thread.

    Args:
        path: The database.
        owner: Who takes jobs through it.
        listener: Told what happens.
        loop: Where futures and the listener belong.
    """

    def __init__(self, path: str, owner: Owner, listener: Listener, loop: asyncio.AbstractEventLoop) -> None:
        self._path = path
        self._owner = owner
        self._listener = listener
        self._loop = loop
        self._gathered: list[_Told[Any]] = []
        """Posted in this turn of the loop: handed over together, so that the thread does not wait for its own waiters."""
        self._queue: SimpleQueue[list[_Told[Any]] | None] = SimpleQueue()
        self._owed: list[_Told[Any]] = []
        self._database: Database | None = None
        self._identity = (0, 0)
        self._counts = Counts()
        self._troubles: dict[str, OutboxUnusable] = {}
        self._closing = False
        self._ended: asyncio.Future[None] = loop.create_future()
        self._thread = threading.Thread(target=self._run, name="hooksd-outbox", daemon=True)
        self._thread.start()

    def post(
        self,
        work: Callable[[Database], T],
        *,
        owed: bool = False,
        undo: Callable[[Database, T], None] | None = None,
    ) -> asyncio.Future[T]:
        """Have something done in a transaction; the future is resolved once it is on disk.

        The future fails with an `OutboxError`. Cancelling it undoes nothing, unless there is an `undo`.

        Args:
            work: Called in the thread. Raises `OutboxError` only before it has written anything.
            owed: Where it fails, the future says so, and it is tried again until it is done: a run that has ended
                cannot be repeated to say so.
            undo: Called like `work`, with its result, where nobody waits for that any more.
        """
        future: asyncio.Future[T] = self._loop.create_future()
        if self._closing:
            future.set_exception(OutboxClosed())
        else:
            if not self._gathered:
                self._loop.call_soon(self._hand_over)
            self._gathered.append(_Told(work, future, owed=owed, undo=undo))
        return future

    def _hand_over(self) -> None:
        if self._gathered:
            gathered, self._gathered = self._gathered, []
            self._queue.put(gathered)

    async def aclose(self) -> None:
        """Do what was posted, then close the database and end the thread."""
        if not self._closing:
            self._closing = True
            self._hand_over()
            self._queue.put(None)
        await asyncio.shield(self._ended)
        self._thread.join()

    def _answer(self, answers: _Answers, counts: Counts) -> None:
        """In one call for a batch: each wakes the loop."""
        self._listener.committed(counts)
        for told, answer in answers:
            if told.future.done():
                # Cancelled, or it was told before that this is still owed.
                if told.undo is not None and not isinstance(answer, Exception):
                    # At the end of the daemon nothing is posted any more; the job is then given back.
                    self.post(partial(_undone, told.undo, answer)).add_done_callback(_seen)
            elif isinstance(answer, Exception):
                told.future.set_exception(answer)
            else:
                told.future.set_result(answer)

    def _finish(self) -> None:
        """The thread has ended; should it have done so by a fault of ours, nobody must wait for it for ever."""
        self._closing = True
        self._hand_over()
        with suppress(Empty):
            while True:
                for told in self._queue.get_nowait() or ():
                    if not told.future.done():
                        told.future.set_exception(OutboxClosed())
        self._ended.set_result(None)

    # ------------------------------------------------------------------------------------------------------------------
    # In the thread

    def _run(self) -> None:
        try:
            going_on = True
            while going_on:
                batch, going_on = self._collect()
                batch = [*self._owed, *batch]
                self._owed = []
                if batch:
                    answers = self._carry_out(batch)
                    self._on_loop(self._answer, answers, self._counts)
                    self._tidy()
        except Exception as error:  # noqa: BLE001 - the loop tells of it like of any fault of ours
            context = {"message": "the outbox's thread has ended", "exception": error}
            self._on_loop(self._loop.call_exception_handler, context)
        finally:
            self._drop()
            self._on_loop(self._finish)

    def _collect(self) -> tuple[list[_Told[Any]], bool]:
        """Wait for something to do and take all that waits; false with the last of it."""
        batch: list[_Told[Any]] = []
        try:
            gathered = self._queue.get(timeout=OWED_RETRY_S if self._owed else None)
            while gathered is not None:
                batch += gathered
                if len(batch) >= MAX_BATCH:
                    return batch, True
                gathered = self._queue.get_nowait()
        except Empty:
            return batch, True
        return batch, False

    def _carry_out(self, batch: list[_Told[Any]], *, again: bool = False) -> _Answers:
        try:
            return self._transact(batch)
        except OutboxUnusable as error:
            return self._refused(batch, error)
        except sqlite3.Error as error:
            self._roll_back()
            if is_damage(error) and not again and self._put_away():
                return self._carry_out(batch, again=True)
            if len(batch) == 1 or concerns_all(error):
                return self._refused(batch, unusable(self._path, error))
        except Exception as error:  # noqa: BLE001 - a fault of ours must reach whoever waits, not end the thread
            self._roll_back()
            if len(batch) == 1:
                return [(batch[0], error)]
        # One of them is the culprit, such as one that is too large for what is left of the disk.
        return [answer for told in batch for answer in self._carry_out([told], again=again)]

    def _transact(self, batch: list[_Told[Any]]) -> _Answers:
        database = self._opened()
        database.begin()
        answers: _Answers = []
        for told in batch:
            try:
                answers.append((told, told.work(database)))
            except OutboxError as error:
                answers.append((told, error))
        database.commit()
        self._counts = database.jobs.counts()
        self._mend("transaction")
        return answers

    def _opened(self) -> Database:
        if self._database is not None and not self._database.is_in_place:
            self._drop()
        if self._database is None:
            self._identity = secured(self._path)
            self._database = Database(self._path, self._owner, self._identity)
        return self._database

    def _roll_back(self) -> None:
        try:
            if self._database is not None:
                self._database.rollback()
        except sqlite3.Error:
            # Then the connection is done for; the next one begins with what was committed.
            self._drop()

    def _drop(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            # What it could not say at its end was said by its last transaction.
            with suppress(sqlite3.Error):
                database.close()

    def _put_away(self) -> bool:
        """Move a damaged file away; false if that is not possible."""
        self._drop()
        try:
            moved_to = set_aside(self._path, self._identity)
        except OSError:
            # The caller tells that it is damaged, which it stays.
            return False
        if moved_to is not None:
            self._on_loop(self._listener.damaged, moved_to)
        return True

    def _tidy(self) -> None:
        """What nobody waits for."""
        if self._database is None:
            return
        try:
            self._database.checkpoint()
        except sqlite3.Error as error:
            self._trouble("checkpoint", unusable(self._path, error))
        else:
            self._mend("checkpoint")

    def _refused(self, batch: list[_Told[Any]], error: OutboxUnusable) -> _Answers:
        self._owed += [told for told in batch if told.owed]
        self._trouble("transaction", error)
        return [(told, error) for told in batch]

    def _trouble(self, where: str, error: OutboxUnusable) -> None:
        known = self._troubles.get(where)
        self._troubles[where] = error
        if known is None or known.reason != error.reason:
            self._on_loop(self._listener.troubled, error)

    def _mend(self, where: str) -> None:
        if self._troubles.pop(where, None) is not None and not self._troubles:
            self._on_loop(self._listener.troubled, None)

    def _on_loop(self, callback: Callable[..., object], *arguments: Any) -> None:
        # A loop that is closed has nobody left who waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *arguments)


def _undone(undo: Callable[[Database, T], None], result: T, database: Database) -> None:
    undo(database, result)


def _seen(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()
