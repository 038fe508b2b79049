"""Every command a person types, against a real daemon: what it prints, where, and how it exits."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


pytestmark = pytest.mark.e2e

COMMAND = [sys.executable, "-m", "hooksd"]
STOP = '{"stop_hook_active": false}'
BASH = {"tool_name": "Bash", "tool_call_id": "c", "tool_input": {"command": "ls"}}


class Done:
    """A command that has ended."""

    def __init__(self, process: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out, self.err = process.returncode, process.stdout, process.stderr
        assert "Traceback" not in self.err, self.err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def hooksd(home: Any) -> Callable[..., Done]:
    """Runs `hooksd …` in the surroundings of the daemon."""

    def run(*arguments: str, stdin: str = "", **environment: str) -> Done:
        process = subprocess.run(
            [*COMMAND, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=home.root / "home",
            env={**home.environment, **environment},
        )
        return Done(process)

    return run


GUARD = {"matcher": "^Bash$", "hooks": [{"type": "command", "command": "echo 'not today' >&2; exit 2"}]}
CONTEXT = """printf '{"additional_context": "more to know"}'"""


# --- without a daemon -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [["ping"], ["status"], ["stop"], ["reload"], ["dispatch", "Stop"], ["test", "Stop"]]
)
def test_a_daemon_that_is_not_there_is_exit_3(hooksd: Callable[..., Done], command: list[str]) -> None:
    done = hooksd(*command)

    assert done.code == 3
    assert done.out == ""
    assert "hooksd serve" in done.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "no command"),
        (["valdate"], "did you mean `hooksd validate`"),
        (["ping", "--sokcet", "x"], "unrecognized arguments"),
        (["schema", "nothing"], "invalid choice"),
        (["test", "Stop", "--runner", "bash"], "--runner needs --command or --script"),
        (["dispatch", "Stop", "--payload", "{oops"], "no JSON"),
        (["dispatch", "Stop", "--payload", "/nowhere/x.json"], "No such file"),
        (["dispatch", "Stop", "--payload", "/dev/zero"], "longer than"),
        (["explain", "Stop", "--payload", '{"a":NaN}'], "NaN is no number"),
        (["test", "Stop", "--payload", '{"a":-Infinity}'], "-Infinity is no number"),
        (["dispatch", "Stop", "--payload", '{"a":1e999}'], "1e999 is too large"),
        (["dispatch", "Stop", "--payload", '{"a":' + "[" * 600 + "]" * 600 + "}"], "nested deeper"),
        (["dispatch", "Stop", "--payload", '{"a":' + "[" * 60_000], "nested deeper"),
        (["dispatch", "Stop", "--payload", '{"a":' + "[" * 900 + '{"b":' * 90], "nested deeper"),
        (["dispatch", "Stop", "--payload", '{"a":' + "9" * 5_000 + "}"], "no JSON"),
        (["validate", "hooks.xyz"], "--dialect"),
        (["logs", "--since", "soon", "--log-file", "/dev/null"], "no time"),
    ],
)
def test_wrong_usage_is_exit_2(hooksd: Callable[..., Done], arguments: list[str], says: str) -> None:
    done = hooksd(*arguments)

    assert done.code == 2
    assert says in done.err


@pytest.mark.parametrize("levels", [510, 511])
def test_a_payload_that_no_message_can_carry_is_wrong_usage(
    hooksd: Callable[..., Done], home: Any, levels: int
) -> None:
    home.start()
    deep = hooksd("dispatch", "Stop", "--payload", '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}")
    long = hooksd("dispatch", "Stop", "--payload", "-", stdin='{"a":"' + "x" * 16_777_216 + '"}')

    assert deep.code == 2
    assert long.code == 2
    assert "limits.max_message_bytes" in long.err


@pytest.mark.parametrize("dialect", ["bamboo", "hooksd"])
def test_a_file_without_end_is_a_problem(hooksd: Callable[..., Done], dialect: str) -> None:
    done = hooksd("validate", "/dev/zero", "--dialect", dialect)

    assert done.code == 1
    assert "longer than 16777216 bytes" in done.out


def test_help_begins_with_examples(hooksd: Callable[..., Done]) -> None:
    listed = hooksd("-h").out
    assert listed.startswith("examples:")
    for line in listed.split("commands:")[1].split("options:")[0].splitlines():
        if name := line.split()[:1]:
            assert hooksd(name[0], "-h").out.startswith("examples:")


def test_a_closed_pipe_is_quiet(home: Any) -> None:
    process = subprocess.Popen(
        [*COMMAND, "schema", "methods"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=home.environment
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=60)

    assert errors == b""
    assert process.returncode == 0


@pytest.mark.parametrize("name", ["hooks.json", "hooks.yaml", "hooksd.toml", "methods"])
def test_schemas_are_json_schema(hooksd: Callable[..., Done], name: str) -> None:
    told = hooksd("schema", name).json

    assert told["$schema"].startswith("https://json-schema.org/")
    assert "$defs" in told


def test_init_validates_and_is_never_overwritten(home: Any, hooksd: Callable[..., Done]) -> None:
    first = hooksd("init", "--json").json["written"]
    hooks = Path(first[0])
    text = hooks.read_text()
    again = hooksd("init")

    assert [Path(path).name for path in first] == ["hooks.json", "hooks.schema.json", "never-force-push.sh"]
    assert again.code == 1
    assert "left alone" in again.err
    assert hooks.read_text() == text
    assert hooksd("init", "--dialect", "hooksd").code == 0
    checked = hooksd("validate", "--json")
    assert checked.code == 0
    assert [entry["problems"] for entry in checked.json["files"]] == [[], []]


def test_what_init_writes_does_its_job(home: Any, hooksd: Callable[..., Done]) -> None:
    hooksd("init")
    home.start()
    push = {**BASH, "tool_input": {"command": "git push --force origin main"}}

    assert hooksd("dispatch", "PreToolUse", "--payload", json.dumps(BASH)).code == 0
    blocked = hooksd("dispatch", "PreToolUse", "--payload", json.dumps(push))
    assert blocked.code == 1
    assert "force-pushing is forbidden" in blocked.out


def test_what_init_writes_for_chrys_does_its_job(home: Any, hooksd: Callable[..., Done]) -> None:
    written = hooksd("init", "--dialect", "chrys", "--json").json["written"]
    home.start()
    tool = {"name": "write_file", "kind": "filesystem.write", "args": {"path": "/etc/hosts"}}
    harmless = {**tool, "args": {"path": "/tmp/x"}}

    def dispatch(given: Any) -> Done:
        payload = json.dumps({"tool": given})
        return hooksd("dispatch", "before_tool_call", "--agent", "chrys", "--payload", payload)

    assert [Path(path).name for path in written] == [
        "hooks.yaml",
        "hooks.yaml.schema.json",
        "protect_etc.py",
    ]
    assert hooksd("validate", written[0]).code == 0
    assert dispatch(harmless).code == 0
    blocked = dispatch(tool)
    assert blocked.code == 1
    assert "write_file may not write below /etc" in blocked.out


@pytest.mark.parametrize("name", ["x.yaml", "x.yml", ".chrys/hooks/hooks.json"])
def test_validate_knows_chrys_files_by_their_names(
    name: str, tmp_path: Path, hooksd: Callable[..., Done]
) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('{"excution": 1}')

    done = hooksd("validate", str(file))

    assert done.code == 1
    assert "unknown key `excution`" in done.out


def test_validate_tells_file_line_path_and_hint(tmp_path: Path, hooksd: Callable[..., Done]) -> None:
    file = tmp_path / "hooks.json"
    file.write_text(
        '{"lifecycle_hooks": {"enabled": true,\n  "PreToolUse": [{"matcher": "*", "hooks": []}]}}'
    )

    done = hooksd("validate", str(file))

    assert done.code == 1
    assert f"{file}:2:" in done.out
    assert "lifecycle_hooks.PreToolUse[0].matcher" in done.out
    assert "→" in done.out


def test_validate_warnings_are_not_errors(tmp_path: Path, hooksd: Callable[..., Done]) -> None:
    file = tmp_path / "hooks.json"
    file.write_text('{"lifecycle_hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}')

    done = hooksd("validate", str(file))

    assert done.code == 0
    assert "enabled" in done.out


def test_socket_path_and_version(home: Any, hooksd: Callable[..., Done]) -> None:
    assert hooksd("socket-path").out == f"{home.socket}\n"
    assert hooksd("socket-path", HOOKSD_SOCKET="/tmp/x.sock").out == "/tmp/x.sock\n"
    assert hooksd("version", "--json").json["hooksd"] == "0.1.0"
    too_long = hooksd("socket-path", "--socket", "/" + "x" * 200)
    assert too_long.code == 2
    assert "107" in too_long.err


# --- with a daemon ----------------------------------------------------------------------------------------------------


def test_ping_and_status(home: Any, daemon: Any, hooksd: Callable[..., Done]) -> None:
    assert hooksd("ping").out.startswith("pong in ")
    status = hooksd("status")
    assert status.code == 0
    assert f"pid {daemon.pid}" in status.out
    assert hooksd("status", "--json").json["state"] == "ready"


def test_status_of_a_degraded_daemon_is_exit_1(home: Any, hooksd: Callable[..., Done]) -> None:
    home.hooks.write_text("{not json")
    home.start()

    status = hooksd("status")

    assert status.code == 1
    assert "degraded" in status.out
    assert str(home.hooks) in status.out


def test_dispatch_obeys_the_outcome(home: Any, hooksd: Callable[..., Done]) -> None:
    home.write_hooks(PreToolUse=[CONTEXT, GUARD])
    home.start()

    blocked = hooksd("dispatch", "PreToolUse", "--payload", json.dumps(BASH))
    passed = hooksd(
        "dispatch", "tool.before", "--payload", "-", "--json", stdin=json.dumps({**BASH, "tool_name": "Read"})
    )

    assert blocked.code == 1
    assert "not today" in blocked.out
    assert "bamboo:user:bamboo:PreToolUse[1].hooks[0]" in blocked.out
    assert passed.code == 0
    assert passed.json["decision"] == "none"
    assert passed.json["contexts"] == ["more to know"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["preToolUse"], "PreToolUse"),
        (["PreToolUse", "--payload", "{}"], "tool_name"),
        (["PreToolUse", "--agent", "nobody"], "bamboo"),
    ],
)
def test_what_the_daemon_refuses_is_wrong_usage(
    daemon: Any, hooksd: Callable[..., Done], arguments: list[str], says: str
) -> None:
    done = hooksd("dispatch", *arguments)

    assert done.code == 2
    assert says in done.err


def test_explain_tells_the_plan_and_the_rest(home: Any, hooksd: Callable[..., Done]) -> None:
    write = {"matcher": "^Write$", "hooks": [{"type": "command", "command": "touch written"}]}
    home.write_hooks(PreToolUse=[GUARD, write])
    home.start()

    told = hooksd("explain", "PreToolUse")

    assert told.code == 0
    assert "1 hook would run" in told.out
    assert "bash" in told.out
    assert "would not run" in told.out
    assert "^Write$" in told.out
    assert not (home.root / "home" / "written").exists()


def test_test_shows_output_and_how_it_is_read(home: Any, hooksd: Callable[..., Done], tmp_path: Path) -> None:
    home.write_hooks(Stop=["echo 'run the tests' >&2; exit 2", "echo no json"])
    home.start()
    script = tmp_path / "hook.py"
    script.write_text(
        "import sys, json; print(json.dumps({'additional_context': json.load(sys.stdin)['session_id']}))"
    )

    pipeline = hooksd("test", "Stop")
    one = hooksd("test", "Stop", "--hook", "bamboo:user:bamboo:Stop[1].hooks[0]", "--json")
    command = hooksd("test", "PreToolUse", "--command", "jq -c .tool_input >&2; exit 2")
    scripted = hooksd("test", "Stop", "--script", str(script), "--json")
    unknown = hooksd("test", "Stop", "--hook", "nobody")

    assert pipeline.code == 1
    assert "run the tests" in pipeline.out
    assert one.code == 0
    assert one.json["results"][0]["problem"]["kind"] == "malformed_output"
    assert command.code == 1
    assert '{"command":"echo lifecycle-hook-test"}' in command.out
    assert scripted.json["interpreted"]["additional_context"] == "lifecycle-hook-test"
    assert unknown.code == 2
    assert "nobody" in unknown.err


def test_test_plays_an_agent_in_the_current_directory(home: Any, hooksd: Callable[..., Done]) -> None:
    home.start()
    (home.root / "home" / "hook.sh").write_text(
        'printf \'{"additional_context": "%s in %s"}\' "$WORD" "$PWD"'
    )

    here = hooksd("test", "Stop", "--script", "./hook.sh", "--json", WORD="mine")
    there = hooksd("test", "Stop", "--command", "pwd >&2; exit 2", "--workspace", "..", "--json")
    chrys = hooksd("test", "before_tool_call", "--dialect", "chrys", "--script", "hook.sh", "--json")

    assert here.json["interpreted"]["additional_context"] == f"mine in {home.root / 'home'}"
    assert there.json["interpreted"]["reason"] == str(home.root)
    assert chrys.json["exit_code"] == 0
    assert chrys.json["cwd"] == str(home.root / "home")


def test_a_refused_payload_is_told_once(daemon: Any, hooksd: Callable[..., Done]) -> None:
    done = hooksd("dispatch", "PreToolUse", "--payload", "{}")

    assert done.err.count("parsed_args: is missing") == 1
    assert "tool_input" in done.err


def test_ping_waits_for_a_daemon_that_starts(home: Any, hooksd: Callable[..., Done]) -> None:
    waiting = subprocess.Popen(
        [*COMMAND, "ping", "--wait", "30"], env=home.environment, stdout=subprocess.PIPE
    )
    home.start()

    assert b"pong" in waiting.communicate(timeout=60)[0]
    assert waiting.returncode == 0
    assert hooksd("ping", "--wait", "nan").code == 2


def test_ping_waits_no_longer_than_it_was_told(home: Any, hooksd: Callable[..., Done]) -> None:
    done = hooksd("ping", "--wait", "0.1")

    assert done.code == 3
    assert "hooksd serve" in done.err


def test_reload_tells_what_is_wrong(home: Any, daemon: Any, hooksd: Callable[..., Done]) -> None:
    home.write_hooks(Stop=["true"])
    good = hooksd("reload", "--wait", "--json")
    home.hooks.write_text('{"lifecycle_hooks": {"enabled": true, "Stop": 7}}')
    bad = hooksd("reload", "--wait")

    assert good.code == 0
    assert good.json["problems"] == []
    # The watcher may have been quicker; either way the new file is in force.
    assert hooksd("status", "--json").json["revision"] >= 2
    assert bad.code == 1
    assert "lifecycle_hooks.Stop" in bad.out
    assert hooksd("reload").code == 0


def test_logs_and_history(home: Any, hooksd: Callable[..., Done]) -> None:
    home.write_hooks(PreToolUse=[GUARD], Stop=["exit 3"])
    home.start()
    hooksd("dispatch", "PreToolUse", "--payload", json.dumps(BASH))
    hooksd("dispatch", "Stop", "--payload", STOP)
    home.wait_for_record("hook.finished", 2)

    logs = hooksd("logs", "--hook", "PreToolUse")
    as_json = [
        json.loads(line)
        for line in hooksd("logs", "-n", "1", "--hook", "*Stop*", "-o", "json").out.splitlines()
    ]
    blocked = hooksd("history", "--blocked")
    failed = hooksd("history", "--failed", "--json").json

    assert "not today" in logs.out
    assert "blocked" in logs.out
    assert [record["exit_code"] for record in as_json] == [3]
    assert "not today" in blocked.out
    assert "exit_code" not in blocked.out
    assert failed["counts"] == {"failed": 1}
    assert "not today" not in home.log.read_text()


def test_logs_follow_goes_on_over_a_restart(home: Any, hooksd: Callable[..., Done]) -> None:
    home.write_hooks(Stop=["true"])
    first = home.start()
    follower = subprocess.Popen(
        [*COMMAND, "logs", "-f", "-n", "1", "-o", "json"],
        stdout=subprocess.PIPE,
        env=home.environment,
        text=True,
    )
    try:
        assert follower.stdout is not None
        lines = iter(follower.stdout.readline, "")
        # It follows from here on.
        assert next(lines)
        first.stop()
        assert any(json.loads(line)["event"] == "daemon.stopping" for line in lines)
        home.start()
        hooksd("dispatch", "Stop", "--payload", STOP)
        assert any(json.loads(line)["event"] == "hook.finished" for line in lines)
    finally:
        follower.send_signal(signal.SIGINT)
        assert follower.wait(20) == 130
        follower.stdout.close()


def test_stop_ends_the_daemon(home: Any, daemon: Any, hooksd: Callable[..., Done]) -> None:
    done = hooksd("stop", "--json")

    assert done.code == 0
    assert done.json == {"stopped": True, "pid": daemon.pid}
    assert daemon.wait() == 0
    assert not home.socket.exists()


def test_demo_is_a_self_check(hooksd: Callable[..., Done], home: Any) -> None:
    done = hooksd("demo", "--json", PATH=os.environ["PATH"])

    told = done.json
    assert done.code == 0, done.out
    assert len(told["scenes"]) + len(told["left_out"]) == 17
    assert all(scene["as_expected"] for scene in told["scenes"])


def test_demo_says_what_it_leaves_out(hooksd: Callable[..., Done], tmp_path: Path) -> None:
    for name in ("bash", "sh", "cat", "grep", "head", "sed", "mv"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    # Not what PATH finds: that may be a shell script which needs more than this directory.
    (tmp_path / "python3").symlink_to(sys.executable)

    done = hooksd("demo", PATH=str(tmp_path))

    assert done.code == 0, done.out + done.err
    assert "needs node" in done.out
    assert "needs jq" in done.out
