#!/usr/bin/env bash
# PreToolUse: never force-push, never delete a home directory. Exit 2 blocks; what is on stderr is the reason.
set -euo pipefail
command=$(jq -r '.tool_input.command // ""')
if [[ $command =~ git[[:space:]]+push.*[[:space:]](-f|--force)([[:space:]]|$) ]]; then
    echo "force-pushing is forbidden here; push normally or open a pull request" >&2
    exit 2
fi
if [[ $command =~ rm[[:space:]]+-[a-z]*r[a-z]*[[:space:]]+(~|\$HOME)(/?[[:space:]]|/?$) ]]; then
    echo "deleting the home directory is forbidden" >&2
    exit 2
fi
