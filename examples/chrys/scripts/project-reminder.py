#!/usr/bin/env python3
"""Reminds the model of the project's rules: the file REMINDER.md in the workspace, if there is one."""

import json
import os
import sys


with open(os.environ["CHRYS_HOOK_PAYLOAD_FILE"], encoding="utf-8") as file:
    payload = json.load(file)

# What the user says in the middle of a turn needs no second reminder.
if payload["injected"]:
    sys.exit(0)
try:
    with open(os.path.join(payload["cwd"], "REMINDER.md"), encoding="utf-8") as file:
        reminder = file.read(4096).strip()
except FileNotFoundError:
    sys.exit(0)
with open(os.environ["CHRYS_HOOK_RESULT"], "w", encoding="utf-8") as file:
    json.dump({"system_reminder": reminder}, file)
