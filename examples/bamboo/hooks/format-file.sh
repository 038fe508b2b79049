#!/usr/bin/env bash
# PostToolUse: tidy up after every edit (here: strip blanks at line ends) and say what was done.
set -euo pipefail
cat >/dev/null
touched=0
for file in *.txt *.md; do
    [[ -f $file ]] || continue
    if grep -q '[[:blank:]]$' "$file"; then
        sed -e 's/[[:blank:]]*$//' "$file" >"$file.tidy" && mv "$file.tidy" "$file"
        touched=$((touched + 1))
    fi
done
if ((touched)); then
    printf '{"additional_context": "format hook: tidied %d file(s)"}' "$touched"
fi
