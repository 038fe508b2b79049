#!/usr/bin/env bash
# Tells the desktop that a turn has ended; where there is none, the file $NOTIFY_LOG, if it is set.
set -euo pipefail

text="Chrys: turn $(jq -r '"\(.turn) has ended (\(.status))"' "$CHRYS_HOOK_PAYLOAD_FILE")"
if [[ -n "${NOTIFY_LOG:-}" ]]; then
  echo "$text" >>"$NOTIFY_LOG"
elif command -v notify-send >/dev/null; then
  notify-send "$text"
elif command -v osascript >/dev/null; then
  osascript -e "display notification \"$text\""
fi
