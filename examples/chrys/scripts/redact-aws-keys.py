#!/usr/bin/env python3
"""Replaces AWS access keys in a shell command before it runs."""

import json
import os
import re


KEY = re.compile(r"AKIA[0-9A-Z]{16}")

with open(os.environ["CHRYS_HOOK_PAYLOAD_FILE"], encoding="utf-8") as file:
    command = json.load(file)["tool"]["args"].get("command", "")

redacted, count = KEY.subn("AKIA-REDACTED", command)
if count:
    # Only what is named here changes; the tool's other arguments stay.
    answer = {"action": "modify", "args_override": {"command": redacted}}
    with open(os.environ["CHRYS_HOOK_RESULT"], "w", encoding="utf-8") as file:
        json.dump(answer, file)
