"""The check right before a hook of a trusted project is started: are the files it names what was granted?

What a word of a hook names depends on the directory it runs in, so it is looked up here as the process will find it.
A name that was not there when the project was granted, and is now, was not granted either (design rule 9).
"""

from __future__ import annotations

import os
from typing import Final

from hooksd.config.digests import FileDigests
from hooksd.config.files import Signature, sign
from hooksd.config.named_files import is_file, named_words, place_in
from hooksd.model.hooks import Hook, Pins


__all__ = ["MAX_CHECKED", "PinCheck"]

MAX_CHECKED: Final = 4096
"""Pairs of hook and directory whose last good check is remembered."""

_Looks = tuple[tuple[str, tuple[str, ...], Signature], ...]


class PinCheck:
    """Checks hooks, and remembers what it found by what `stat` says. May be used in several threads.

    No check waits for another: one may hang on a dead network disk.
    """

    def __init__(self) -> None:
        self._passed: dict[tuple[int, str], tuple[Hook, _Looks]] = {}

    def passes_now(self, hook: Hook, cwd: str) -> bool:
        """Whether the last check in this directory was passed and nothing changed since; some microseconds.

        Args:
            hook: One with pins.
            cwd: The absolute directory it will run in.
        """
        passed = self._passed.get((id(hook), cwd))
        if passed is None or passed[0] is not hook:
            return False
        for path, directories, signature in passed[1]:  # noqa: SIM110 - a generator costs twice as much
            if sign(path, directories) != signature:
                return False
        return True

    def fault(self, hook: Hook, cwd: str) -> str | None:
        """Look at everything the hook names; reads files, so call it off the loop.

        Args:
            hook: One with pins.
            cwd: The absolute directory it will run in.

        Returns:
            What is not as it was granted, a sentence; None when all is.
        """
        if hook.pins is None:
            raise TypeError(f"{hook.name} has no pins")
        fault, looks, steady = self._check(hook, hook.pins, cwd)
        if fault is None and steady:
            if len(self._passed) >= MAX_CHECKED:
                self._passed.clear()
            self._passed[id(hook), cwd] = (hook, looks)
        else:
            self._passed.pop((id(hook), cwd), None)
        return fault

    @staticmethod
    def _check(hook: Hook, pins: Pins, cwd: str) -> tuple[str | None, _Looks, bool]:
        granted = dict(pins.files)
        names = {os.path.basename(place) for place in granted}
        looks: list[tuple[str, tuple[str, ...], Signature]] = []
        steady = True
        digests = FileDigests()
        for word in named_words(hook.handler):
            path = os.path.join(cwd, word)
            signature = sign(path, ())
            if not is_file(path):
                if os.path.basename(path) in names and (place := place_in(pins.root, path)) in granted:
                    return f"{place} is not there any more", (), False
                looks.append((path, (), signature))
                continue
            place = place_in(pins.root, path)
            if place is None:
                if place_in(pins.root, os.path.join(pins.root, word)) in granted:
                    return f"{word} was granted, but in {cwd} it is a file outside of the project", (), False
                looks.append((path, (), signature))
                continue
            expected = granted.get(place)
            if expected is None:
                return f"{place} was not there when the project was granted trust", (), False
            known = digests.look(path)
            if known.problem is not None:
                return f"{place}: {known.problem.message}", (), False
            if known.sha256 != expected:
                return f"{place} is not what was granted", (), False
            looks.append((path, known.directories, known.signature))
            steady = steady and known.steady
        return None, tuple(looks), steady
