#!/usr/bin/env python3
"""Adds what is wrong with a Python file to the result of the call that wrote it: by ruff, else at least its syntax."""

import json
import os
import shutil
import subprocess


def findings(path: str) -> str:
    ruff = shutil.which("ruff")
    if ruff is not None:
        command = [ruff, "check", "--quiet", "--output-format", "concise", path]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    try:
        with open(path, "rb") as file:
            compile(file.read(), path, "exec")
    except SyntaxError as error:
        return f"{path}:{error.lineno}: {error.msg}"
    return ""


with open(os.environ["CHRYS_HOOK_PAYLOAD_FILE"], encoding="utf-8") as file:
    payload = json.load(file)
path = os.path.join(payload["cwd"], payload["tool"]["args"]["path"])
if os.path.exists(path) and (found := findings(path)):
    with open(os.environ["CHRYS_HOOK_RESULT"], "w", encoding="utf-8") as file:
        json.dump({"extra_context": f"[lint]\n{found}"}, file)
