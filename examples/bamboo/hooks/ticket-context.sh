#!/bin/sh
# UserPromptSubmit: a prompt that names a ticket gets its title along.
if ticket=$(grep -o 'TICKET-[0-9][0-9]*' | head -n 1) && [ -n "$ticket" ]; then
    printf '{"additional_context": "%s is about the flaky login test"}' "$ticket"
fi
