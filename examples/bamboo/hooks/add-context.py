"""SessionStart: tell the model something about this workspace."""

import json
import sys
from pathlib import Path


event = json.load(sys.stdin)
workspace = Path(event["workspace_path"])
files = sorted(path.name for path in workspace.iterdir() if not path.name.startswith("."))
print(
    json.dumps(
        {"additional_context": f"{event['source']}: this workspace holds {', '.join(files) or 'nothing yet'}"}
    )
)
