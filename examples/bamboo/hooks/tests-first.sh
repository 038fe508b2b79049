#!/usr/bin/env bash
# Stop: the agent may not stop before the tests have been run (here: before a file `tests-passed` is there).
set -euo pipefail
cat >/dev/null
if [[ ! -e tests-passed ]]; then
    printf '{"decision": "block", "reason": "run the tests first, then stop"}'
fi
