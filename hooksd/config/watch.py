"""Noticing that a configuration file changed, so that what reads the current configuration follows by itself.

Directories are watched, never files: an editor that saves by renaming puts another file in the place of the one that
was watched. What happened is not asked of the events; they only say that it is time to look. Nothing that an execution
is opened with depends on them (opening looks at the files itself), so a watch that fails costs a delay, not a gate.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec


if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver, ObservedWatch


__all__ = ["DEBOUNCE_S", "POLL_S", "WatchPoints", "Watcher", "watch_points"]

DEBOUNCE_S: Final = 0.02
"""Events closer together than this are told as one; a save is several of them."""

POLL_S: Final = 2.0
"""How often to look where the system cannot tell by itself."""

THREADS: Final = 4
"""Threads that watching one more directory may take: the observer's, the one that reads, and the directory's own."""

MAX_LINKS: Final = 40
"""Symbolic links on the way to one file, as the kernel counts them."""


class WatchPoints(msgspec.Struct, frozen=True, kw_only=True):
    """What to watch to notice every way in which what a path leads to can change.

    Attributes:
        contents: Directories in which a change of a file's content counts.
        names: Directories in which only names coming and going count.
        paths: The paths that count; everything else in these directories is somebody else's.
    """

    contents: frozenset[str]
    names: frozenset[str]
    paths: frozenset[str]


def watch_points(files: Iterable[str]) -> WatchPoints:
    """Follow each path as the kernel does, and see whose change would lead it elsewhere.

    These are the directory in which the file really lies, or the nearest one that exists; its parent, where it may be
    moved away; and each directory that holds a symbolic link on the way.

    Args:
        files: Absolute paths. They need not exist.
    """
    contents: set[str] = set()
    names: set[str] = set()
    paths: set[str] = set()
    for file in files:
        directory, links = "/", 0
        parts = deque(part for part in file.split("/") if part not in ("", "."))
        while parts:
            part = parts.popleft()
            if part == "..":
                directory = os.path.dirname(directory)
                continue
            path = os.path.join(directory, part)
            try:
                mode = os.lstat(path).st_mode
                target = os.readlink(path) if stat.S_ISLNK(mode) else None
            except (OSError, ValueError):
                paths.add(path)
                break
            if target is not None:
                names.add(directory)
                paths.add(path)
                links += 1
                if links > MAX_LINKS:
                    break
                parts.extendleft(reversed([step for step in target.split("/") if step not in ("", ".")]))
                if target.startswith("/"):
                    directory = "/"
            elif parts and stat.S_ISDIR(mode):
                directory = path
            else:
                paths.add(path)
                break
        contents.add(directory)
        paths.add(directory)
        names.add(os.path.dirname(directory))
    return WatchPoints(
        contents=frozenset(contents), names=frozenset(names - contents), paths=frozenset(paths)
    )


class _Watched(NamedTuple):
    watch: ObservedWatch
    whole: bool
    identity: tuple[int, int]


class _Handler:
    """What the observer calls with each event."""

    def __init__(self, dispatch: Callable[[FileSystemEvent], None]) -> None:
        self.dispatch = dispatch


class Watcher:
    """Watches directories with threads of its own, and calls back on the loop.

    Args:
        loop: Where `changed` is called.
        changed: Told, after `DEBOUNCE_S`, that something may have changed.
        tell: Told once about each different thing that cannot be watched, with what to do.

    Attributes:
        failing: Whether something that should be watched is not; then the owner has to look every `POLL_S`.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, changed: Callable[[], None], tell: Callable[[str, str], None]
    ) -> None:
        self.failing = False
        self._loop = loop
        self._changed = changed
        self._tell = tell
        self._told: set[int | None] = set()
        # The observer asks of a handler only that it can be called so.
        self._handler: Any = _Handler(self._notice)
        self._observer: BaseObserver | None = None
        self._watched: dict[str, _Watched] = {}
        self._paths: frozenset[str] = frozenset()
        self._lock = threading.Lock()
        """Guards the directories that the observer's thread saw deleted: their watches are dead."""
        self._deleted: set[str] = set()
        self._noticed = False
        self._timer: asyncio.TimerHandle | None = None

    # -- called off the loop, by one thread at a time

    def follow(self, files: frozenset[str]) -> bool:
        """Watch what decides about these files, and nothing else. Makes system calls, and may wait half a second.

        Returns:
            Whether something is watched that was not before: a change until now may have gone unnoticed.
        """
        points = watch_points(files)
        self._paths = points.paths
        wanted = dict.fromkeys(points.names, False) | dict.fromkeys(points.contents, True)
        self.failing = False
        with self._lock:
            deleted, self._deleted = self._deleted, set()
        for directory, watched in list(self._watched.items()):
            if (
                directory in deleted
                or wanted.get(directory) is not watched.whole
                or watched.identity != _identity(directory)
            ):
                self._stop_watching(directory)
        added = [directory for directory in wanted if directory not in self._watched]
        for directory in added:
            self._start_watching(directory, whole=wanted[directory])
        return bool(added) and not self.failing

    def close(self) -> None:
        """Stop watching and end the threads. May wait half a second; nothing is called back afterwards."""
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()
            observer.join()
        self._watched.clear()

    def _start_watching(self, directory: str, *, whole: bool) -> None:
        try:
            identity = _identity(directory)
            if identity is None or not os.access(directory, os.R_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            _make_sure_of_threads()
            observer = self._running_observer()
            watch = observer.schedule(
                self._handler, directory, recursive=False, event_filter=_filter(whole=whole)
            )
            self._watched[directory] = _Watched(watch, whole, identity)
        except OSError as error:
            self._failed(directory, error)
        except RuntimeError:
            # Somebody took the threads that were there a moment ago.
            self._failed(directory, _no_threads())

    def _stop_watching(self, directory: str) -> None:
        watched = self._watched.pop(directory)
        if self._observer is not None:
            # The thread of a directory that is gone has ended by itself.
            with contextlib.suppress(KeyError):
                self._observer.unschedule(watched.watch)

    def _running_observer(self) -> BaseObserver:
        if self._observer is None:
            # Late: the import costs a third of the start of the daemon.
            from watchdog.observers import Observer

            # It logs what it meets on the way down; without a handler that goes to stderr.
            logging.getLogger("watchdog").addHandler(logging.NullHandler())
            observer = Observer()
            observer.start()
            self._observer = observer
        return self._observer

    def _failed(self, directory: str, error: OSError) -> None:
        if error.errno == errno.ENOENT and not os.path.isdir(directory):
            # It went between two looks: whoever removed it made an event in its parent.
            return
        self.failing = True
        if error.errno in self._told:
            return
        self._told.add(error.errno)
        hint = {
            errno.ENOSPC: "raise fs.inotify.max_user_watches",
            errno.EMFILE: "raise fs.inotify.max_user_instances, or the limit of open files",
            errno.EAGAIN: "the user or the service may not have more processes; raise `ulimit -u` or TasksMax=",
            errno.EACCES: "make the directory readable for the user that hooksd runs as",
        }.get(error.errno or 0, "changes are found when an execution is opened, or by `hooksd reload`")
        self._tell(
            f"{directory} cannot be watched ({error.strerror}): changes are looked for every {POLL_S:g} s instead",
            hint,
        )

    # -- called in the observer's thread

    def _notice(self, event: FileSystemEvent) -> None:
        source, target = os.fsdecode(event.src_path), os.fsdecode(event.dest_path)
        if event.event_type == "deleted" and event.is_directory:
            with self._lock:
                self._deleted.add(source)
        if source not in self._paths and target not in self._paths:
            return
        if not self._noticed:
            self._noticed = True
            # The loop may have been closed a moment ago: then nobody wants to know any more.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._arrived)

    # -- called on the loop

    def _arrived(self) -> None:
        self._noticed = False
        if self._timer is None:
            self._timer = self._loop.call_later(DEBOUNCE_S, self._fire)

    def _fire(self) -> None:
        self._timer = None
        if self._observer is not None:
            self._changed()


def _identity(directory: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(directory)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


def _make_sure_of_threads() -> None:
    """Start as many threads as it may take, and end them.

    Where watchdog gets no thread it loses the descriptors that it has opened for it, at each try, and what all its
    watches share stays without a reader for ever.

    Raises:
        OSError: There is no room for so many.
    """
    over = threading.Event()
    threads = [threading.Thread(target=over.wait, daemon=True) for _ in range(THREADS)]
    started = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
    except RuntimeError:
        raise _no_threads() from None
    finally:
        over.set()
        for thread in started:
            thread.join()


def _no_threads() -> OSError:
    return OSError(errno.EAGAIN, "no more threads can be started")


def _filter(*, whole: bool) -> list[type[FileSystemEvent]]:
    """Never opening, reading or closing without writing: our own reads would wake us."""
    from watchdog import events

    names: list[type[FileSystemEvent]] = [
        events.FileCreatedEvent,
        events.FileMovedEvent,
        events.FileDeletedEvent,
        events.DirCreatedEvent,
        events.DirMovedEvent,
        events.DirDeletedEvent,
    ]
    if not whole:
        return names
    contents: list[type[FileSystemEvent]] = [events.FileModifiedEvent, events.FileClosedEvent]
    # Since watchdog 7 a changed mode is an event of its own.
    attributes = (getattr(events, name, None) for name in ("FileAttribEvent", "DirAttribEvent"))
    return names + contents + [kind for kind in attributes if kind is not None]
