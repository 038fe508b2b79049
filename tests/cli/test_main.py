import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hooksd import __version__
from hooksd.cli import main as module
from hooksd.cli.main import COMMANDS, main


Output = pytest.CaptureFixture[str]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A command `try`, whose `run` a test can replace."""
    made = ModuleType("try_command")
    made.NAME, made.HELP, made.EXAMPLES = "try", "try something", "examples:\n  hooksd try it\n"  # type: ignore[attr-defined]

    def add_arguments(parser: Any) -> None:
        parser.add_argument("--socket")
        parser.add_argument("what", nargs="*")

    made.add_arguments = add_arguments  # type: ignore[attr-defined]
    made.run = lambda args: 0  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "try_command", made)
    monkeypatch.setattr(module, "COMMANDS", {**COMMANDS, "try": "try_command"})
    return made


def hooksd(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hooksd", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        **options,
    )


@pytest.mark.parametrize("status", [0, 1, 3, 4])
def test_the_status_of_a_command_is_the_exit_status(command: Any, status: int) -> None:
    command.run = lambda args: status

    assert main(["try", "--socket", "/s", "a", "b"]) == status


def test_a_command_gets_its_arguments(command: Any) -> None:
    seen = []
    command.run = lambda args: seen.append((args.socket, args.what)) or 0

    main(["try", "--socket", "/s", "a", "b"])

    assert seen == [("/s", ["a", "b"])]


@pytest.mark.parametrize("arguments", [["-h"], ["--help"], ["help"]])
def test_the_help_has_examples_first_and_every_command(arguments: list[str], capsys: Output) -> None:
    assert main(arguments) == 0

    out = capsys.readouterr().out
    assert out.startswith("examples:\n")
    for name in COMMANDS:
        assert f"\n  {name} " in out


@pytest.mark.parametrize("arguments", [["try", "-h"], ["help", "try"]])
def test_the_help_of_a_command(command: Any, arguments: list[str], capsys: Output) -> None:
    assert main(arguments) == 0

    out = capsys.readouterr().out
    assert out.startswith("examples:\n  hooksd try it\n\nusage: hooksd try ")
    assert "try something" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_with_examples(name: str, capsys: Output) -> None:
    assert main([name, "-h"]) == 0

    assert capsys.readouterr().out.startswith("examples:\n")


def test_version(capsys: Output) -> None:
    assert main(["--version"]) == 0

    assert capsys.readouterr().out == f"hooksd {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "no command given"),
        (["sevre"], "did you mean `hooksd serve`?"),
        (["xyzzy"], "unknown command 'xyzzy'\n"),
        (["help", "sevre"], "did you mean `hooksd serve`?"),
        (["--socket", "/s"], "unknown option '--socket' before the command"),
        (["try", "--sokcet", "/s"], "did you mean `--socket`?"),
        (["try", "--sokcet=/s"], "did you mean `--socket`?"),
        (["try", "--sock", "/s"], "unrecognized arguments: --sock"),
        (["try", "--frobnicate"], "unrecognized arguments: --frobnicate\n"),
        (["try", "--socket"], "argument --socket: expected one argument"),
    ],
)
def test_wrong_usage(command: Any, arguments: list[str], told: str, capsys: Output) -> None:
    assert main(arguments) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert "-h`\n" in err
    assert err.startswith("hooksd")


def test_a_fault_of_ours_shows_no_traceback(command: Any, capsys: Output) -> None:
    def run(args: Any) -> int:
        raise ZeroDivisionError("secret")

    command.run = run

    assert main(["try"]) == 70

    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert "ZeroDivisionError" in err
    assert "HOOKSD_DEBUG=1" in err


def test_it_does_when_that_is_wanted(command: Any, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(args: Any) -> int:
        raise ZeroDivisionError

    command.run = run
    monkeypatch.setenv("HOOKSD_DEBUG", "1")

    assert main(["try"]) == 70

    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt(command: Any, capsys: Output) -> None:
    def run(args: Any) -> int:
        raise KeyboardInterrupt

    command.run = run

    assert main(["try"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("arguments", [["-h"], ["serve", "-h"], ["schema", "hooksd.toml"]])
def test_a_closed_pipe_is_quiet(arguments: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "hooksd", *arguments],
            stdout=write_end,
            stderr=subprocess.PIPE,
            timeout=30,
            check=False,
        )
    finally:
        os.close(write_end)

    assert (done.returncode, done.stderr) == (0, b"")


needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no device that is always full")


@needs_full
@pytest.mark.parametrize(
    "arguments", [["-h"], ["serve", "-h"], ["schema", "hooksd.toml"], ["version", "--json"]]
)
def test_output_that_cannot_be_written_is_told_and_is_not_0(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hooksd", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )

    assert (done.returncode, done.stderr) == (
        1,
        "hooksd: the output cannot be written: No space left on device\n",
    )


@needs_full
@pytest.mark.parametrize(
    "arguments",
    [[], ["statsu"], ["ping", "--nothing"], ["validate", "file.xyz"], ["socket-path", "--socket", "x"]],
)
def test_a_message_that_cannot_be_written_changes_no_exit_status(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hooksd", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=full,
            timeout=30,
            check=False,
        )

    assert done.returncode == hooksd(*arguments).returncode != 120


@pytest.mark.parametrize(
    "arguments", [["\x1b[31m"], ["ping", "\x1b[31m"], ["ping", "--\x1b[31m"], ["schema", "\x1b[31m"]]
)
def test_what_was_typed_does_not_act_on_the_terminal(arguments: list[str]) -> None:
    done = hooksd(*arguments)

    assert done.returncode == 2
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(closed: str, tmp_path: Path) -> None:
    code = (
        "import sys; from hooksd.cli.main import main; status = main(['--version']);"
        "file = open(sys.argv[1], 'w'); file.write(f'{status} {file.fileno() > 2}')"
    )
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" "$2" {closed}', sys.executable, code, str(tmp_path / "out")],
        timeout=30,
        check=False,
    )

    assert done.returncode == 0
    assert (tmp_path / "out").read_text() == "0 True"


def test_text_that_the_terminal_has_no_letters_for(command: Any) -> None:
    code = "import sys; from hooksd.cli import main as m; print('▸ é', file=sys.stderr); sys.stdout.write('▸'); sys.exit(m.main(['--version']))"
    done = subprocess.run(
        [sys.executable, "-c", "from hooksd.cli.main import _complete_streams; _complete_streams(); " + code],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 0
    assert done.stdout.startswith(b"\\u25b8hooksd ")


def test_a_command_is_imported_only_when_it_is_used() -> None:
    code = "import sys; from hooksd.cli.main import main; main(['socket-path']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )

    loaded = set(done.stdout.splitlines()[-1].split())
    assert "hooksd.cli.socket_path" in loaded
    assert not loaded & {
        "hooksd.cli.serve",
        "hooksd.daemon",
        "uvloop",
        "structlog",
        "watchdog",
        "re2",
        "asyncio",
    }


def test_as_a_module_and_as_a_program() -> None:
    program = Path(sys.executable).with_name("hooksd")

    assert hooksd("--version").stdout == f"hooksd {__version__}\n"
    if program.exists():
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=True)
        assert done.stdout == f"hooksd {__version__}\n"
