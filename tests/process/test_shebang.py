from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from hooksd.process.shebang import shell_of


@pytest.mark.parametrize(
    ("start", "shell"),
    [
        (b"#!/bin/sh\n", ("/bin/sh",)),
        (b"#!/bin/bash", ("/bin/bash",)),
        (b"#! /usr/bin/zsh -e\nls\n", ("/usr/bin/zsh", "-e")),
        (b"#!/bin/bash -e -u\n", ("/bin/bash", "-e", "-u")),
        (b"#!\t/bin/dash \t\n", ("/bin/dash",)),
        (b"#!/usr/bin/env bash\n", ("bash",)),
        (b"#!/usr/bin/env ksh -u\n", ("ksh", "-u")),
        (b"#!/usr/bin/env -S bash -e\n", ("bash", "-e")),
        (b"#!/usr/bin/env -Sbash -e\n", ("bash", "-e")),
        (b"#!/usr/bin/env --split-string bash\n", ("bash",)),
        (b"#!/bin/bash\r\necho\r\n", ("/bin/bash",)),
        (b"#!/usr/bin/env bash\r\n", ("bash",)),
        (b"#!bash\n", ("bash",)),
        (b"#!/opt/my shells/bash\n", None),
        (b"#!/usr/bin/env -S A=1 bash\n", None),
        (b"#!/usr/bin/env\n", None),
        (b"#!/usr/bin/env -S\n", None),
        (b"#!/usr/bin/python3\n", None),
        (b"#!/bin/bash5\n", None),
        (b"#!\n/bin/bash\n", None),
        (b"#!", None),
        (b"", None),
        (b"\n#!/bin/bash\n", None),
        (b"\xef\xbb\xbf#!/bin/bash\n", None),
        (b"#!/\xff/bash\n", ("/\udcff/bash",)),
    ],
)
def test_first_lines(start, shell):
    assert shell_of(start) == shell


@given(st.binary(max_size=60))
def test_never_fails(rest):
    named = shell_of(b"#!" + rest)
    assert named is None or named[0]
