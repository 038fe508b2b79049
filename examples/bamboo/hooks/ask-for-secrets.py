"""PreToolUse: somebody has to look before a file with secrets is written."""

import json
import sys
from pathlib import PurePath


event = json.load(sys.stdin)
path = PurePath(str(event["tool_input"].get("file_path", "")))
if path.name == ".env" or path.suffix in {".pem", ".key"}:
    print(json.dumps({"decision": "ask", "additional_context": f"{path.name} may hold secrets"}))
