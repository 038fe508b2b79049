"""The thread that writes the log: the one place of the daemon that may wait for a disk.

Everybody else puts lines into a bounded queue and goes on. When the sink is slow, full or gone, lines are dropped and
counted; once it takes lines again, it is told how many are missing.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from hooksd.observe.last_words import say
from hooksd.observe.log_file import AppendFailed, LogFile


__all__ = ["MAX_QUEUED_BYTES", "MAX_QUEUED_LINES", "LogWriter"]

MAX_QUEUED_LINES = 8_192
"""Lines that wait to be written: seconds of the busiest daemon."""
MAX_QUEUED_BYTES = 8 * 1024 * 1024
"""And how many bytes of them."""

_GATHER_S = 0.01
"""After a wake-up the thread waits so long for more lines: one write, and one fight for the interpreter, for many."""

_BATCH_BYTES = 256 * 1024
"""Most that is written at once."""

_RETRY_S = 1.0
"""Between two attempts on a sink that failed."""

_SINK_WAIT_S = 0.25
"""How long one attempt waits for a full pipe or terminal, and so the longest wait for it at the end of the daemon."""


class LogWriter:
    """Writes lines to a `LogFile` on its own thread.

    A sink that fails is tried again; meanwhile the queue fills, and what comes then is dropped and counted. All methods
    are called on one thread, that of the loop.

    Args:
        file: Where the lines go. Only the writer's thread touches it.
        dropped_line: Makes the line that tells how many lines are missing at its place.
    """

    def __init__(self, file: LogFile, dropped_line: Callable[[int], bytes]) -> None:
        self._file = file
        self._dropped_line = dropped_line
        self._queue: deque[bytes] = deque()
        # One thread only adds to the first, the other only to the second: no lock on the way of a record.
        self._bytes_in = 0
        self._bytes_out = 0
        self._missing = 0
        self._refused = 0
        self._lost = 0
        self.failure: str | None = None
        """What is wrong with the sink at the last attempt; None while it works."""
        self._retrying = False
        self._pending = b""
        self._reopen = False
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hooksd-log", daemon=True)

    @property
    def dropped(self) -> int:
        """Lines that were not written and never will be, since the start."""
        return self._refused + self._lost

    def start(self) -> None:
        """Start the thread. Lines may be put before."""
        self._thread.start()

    def put(self, line: bytes) -> None:
        """Queue a line (with its line end), or count it as dropped. Returns at once."""
        if len(self._queue) >= MAX_QUEUED_LINES or self._bytes_in - self._bytes_out > MAX_QUEUED_BYTES:
            self._missing += 1
            self._refused += 1
            return
        if self._missing:
            self._tell_missing()
        self._queue.append(line)
        self._bytes_in += len(line)
        if not self._wake.is_set():
            self._wake.set()

    def reopen(self) -> None:
        """Open the file anew before the next line (SIGUSR1)."""
        self._reopen = True
        self._wake.set()

    def close(self, timeout_s: float) -> int:
        """Write what waits, and stop.

        Args:
            timeout_s: How long to wait for the sink; the thread is left behind when it hangs.

        Returns:
            How many lines could not be written any more.
        """
        if self._missing:
            self._tell_missing()
        self._stopping.set()
        self._wake.set()
        self._thread.join(timeout_s)
        return len(self._queue) + self._pending.count(b"\n")

    def _tell_missing(self) -> None:
        count, self._missing = self._missing, 0
        line = self._dropped_line(count)
        self._queue.append(line)
        self._bytes_in += len(line)

    # ------------------------------------------------------------------------------------------------------------------
    # On the thread

    def _run(self) -> None:
        while not self._stopping.is_set():
            if self._retrying:
                self._stopping.wait(_RETRY_S)
            else:
                self._wake.wait()
                self._stopping.wait(_GATHER_S)
            # Cleared before looking: a line that is put after the look sets it again.
            self._wake.clear()
            self._write_or_tell()
        self._write_or_tell()
        self._file.close()

    def _write_or_tell(self) -> None:
        try:
            self._write_waiting()
        except Exception as error:  # noqa: BLE001 - a thread that died of a fault of ours would be a silent log
            self._lost += self._pending.count(b"\n")
            self._pending = b""
            self._retrying = True
            self._tell(f"internal error: {type(error).__name__}: {error}")

    def _write_waiting(self) -> None:
        if self._reopen:
            self._reopen = False
            self._file.close()
        while self._pending or self._queue:
            self._pending = self._pending or self._next_batch()
            try:
                self._file.append(self._pending, _SINK_WAIT_S)
            except AppendFailed as error:
                # What was written of a line stays a torso in the file; the line is written again as a whole.
                self._pending = self._pending[self._pending.rfind(b"\n", 0, error.written) + 1 :]
                self._tell(str(error))
                self._retrying = not error.busy
                if self._retrying or self._stopping.is_set():
                    return
            else:
                self._pending = b""
                self._retrying = False
                self._tell(self._file.rotation_failure)

    def _next_batch(self) -> bytes:
        batch: list[bytes] = []
        size = 0
        while self._queue and size < _BATCH_BYTES:
            line = self._queue.popleft()
            size += len(line)
            batch.append(line)
        self._bytes_out += size
        return b"".join(batch)

    def _tell(self, failure: str | None) -> None:
        known, self.failure = self.failure, failure
        if failure in {known, None} or self._file.is_stderr:
            return
        # `daemon/status` tells it, too.
        say(f"the log {self._file.path}: {failure}; trying again")
