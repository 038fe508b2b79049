"""A toy agent that asks hooksd before it does anything: start `hooksd serve`, then run this file.

The model is a script and the tool only pretends, so nothing here can do harm. What an agent does with each outcome is real.
"""

import os
import sys
import uuid

from hooksd_client import Client, ClientError, Execution, NoAnswer, Outcome


MODEL = [("Bash", {"command": "ls -l"}), ("Bash", {"command": "rm -rf /"}), ("Bash", {"command": "date"})]


def ask(run: Execution, event: str, payload: dict) -> Outcome:
    """One gate. Nobody there: blocked if a guard wants it so, else as if there were no hooks."""
    try:
        outcome = run.dispatch(event, payload)
    except NoAnswer as problem:
        outcome = Outcome(event, "block" if problem.guarded else "none", reason=str(problem))
    for text in (*outcome.contexts, *outcome.reminders):
        print(f"   {event} tells the model: {text}")
    if outcome.blocked:
        print(f"   {event} blocks: {outcome.reason}")
    return outcome


def use_tool(run: Execution, name: str, arguments: dict) -> None:
    print(f"the model calls {name} {arguments}")
    call = {"tool_name": name, "tool_call_id": uuid.uuid4().hex}
    outcome = ask(run, "PreToolUse", {**call, "tool_input": arguments})
    if outcome.blocked or (outcome.asks and input("   run it? [y/N] ").lower() != "y"):
        return  # the model gets the reason instead of a result
    result = f"(pretended to run {outcome.arguments or arguments})"
    print(f"   {result}")
    told = {"success": True, "result": result, "needs_human": False, "duration_ms": 1}
    ask(run, "PostToolUse", {**call, "outcome": told})


def main() -> None:
    options = {"agent": "bamboo", "session_id": "toy", "workspace_path": os.getcwd(), "env": dict(os.environ)}
    with Client(name="toy-agent") as client, client.execution(uuid.uuid4().hex, **options) as run:
        if ask(run, "UserPromptSubmit", {"prompt": "tidy up"}).blocked:
            return
        for name, arguments in MODEL:
            use_tool(run, name, arguments)
        goes_on = False
        while ask(run, "Stop", {"stop_hook_active": goes_on}).blocked:
            goes_on = True  # the reason is the model's next message
        run.drain("session")


if __name__ == "__main__":
    try:
        main()
    except ClientError as error:
        sys.exit(f"toy_agent: {error}")
