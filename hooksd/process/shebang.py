"""The first line of a script. Pure: the first bytes of the file in, what they name out."""

from __future__ import annotations

import posixpath


__all__ = ["READ_BYTES", "shell_of"]

READ_BYTES = 256
"""How much of a file the Linux kernel reads to find a first line (BINPRM_BUF_SIZE)."""

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})


def shell_of(start: bytes) -> tuple[str, ...] | None:
    """The shell that a script's first line names, with its options; None if it names none of the known ones.

    `#!/usr/bin/env bash` gives the name `bash` alone, to be found on the PATH; `#!/bin/bash` the path. Options are kept,
    for they are part of how the script was meant (`#!/bin/bash -e`). The kernel passes everything after the program as
    one argument; here it is split at white space, as `env -S` does, so that `#!/bin/bash -e -u` works instead of
    failing with a usage error. A carriage return at the end of the line is no part of the name.
    """
    if not start.startswith(b"#!"):
        return None
    line = start[2:].split(b"\n", 1)[0]
    words = line.decode("utf-8", "surrogateescape").split()
    if words and posixpath.basename(words[0]) == "env":
        del words[0]
        if words and words[0] in ("-S", "--split-string"):
            del words[0]
        elif words and words[0].startswith("-S"):
            words[0] = words[0].removeprefix("-S")
    if not words or posixpath.basename(words[0]) not in SHELLS:
        return None
    return tuple(words)
