#!/usr/bin/env bash
# Blocks writes below /etc. A failure of this script blocks, too: `on_error: block`.
set -euo pipefail

path="$(jq -r '.tool.args.path // empty' "$CHRYS_HOOK_PAYLOAD_FILE")"
# The last pattern is the side entrance.
case "$path" in
  /etc | /etc/* | *../etc/*)
    jq -n --arg path "$path" \
      '{action: "block", reason: "\($path) is system configuration; ask a person to change it"}' \
      >"$CHRYS_HOOK_RESULT"
    ;;
esac
