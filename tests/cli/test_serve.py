from collections.abc import Callable
from typing import Any

import pytest

from hooksd import daemon
from hooksd.cli.main import main
from hooksd.model.errors import AlreadyRunning, ServiceError, SocketUnusable, UnsafePermissions
from hooksd.model.records import Level


Output = pytest.CaptureFixture[str]
Served = Callable[..., Any]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[daemon.ServeOptions]:
    """What the daemon was asked for; it ends at once. Daemons that live are in the e2e tests."""
    seen: list[daemon.ServeOptions] = []
    monkeypatch.delenv("HOOKSD_LOG_LEVEL", raising=False)
    monkeypatch.setattr(daemon, "serve", lambda options: seen.append(options) or 0)
    return seen


def test_without_options(served: list[daemon.ServeOptions]) -> None:
    assert main(["serve"]) == 0

    assert served == [daemon.ServeOptions()]


def test_every_option(served: list[daemon.ServeOptions]) -> None:
    arguments = (
        "--socket s --config c --state-dir d --log-file - --log-level debug --log-format console --ready-fd 3"
    )

    main(["serve", *arguments.split()])

    assert served == [
        daemon.ServeOptions(
            socket="s",
            config="c",
            state_dir="d",
            log_file="-",
            log_level=Level.DEBUG,
            log_format="console",
            ready_fd=3,
        )
    ]


def test_the_level_of_the_environment(
    served: list[daemon.ServeOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOKSD_LOG_LEVEL", "warning")

    main(["serve"])
    main(["serve", "--log-level", "error"])

    assert [options.log_level for options in served] == [Level.WARNING, Level.ERROR]


def test_a_level_that_there_is_not(
    served: list[daemon.ServeOptions], monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setenv("HOOKSD_LOG_LEVEL", "loud")

    assert main(["serve"]) == 2

    assert capsys.readouterr().err == (
        "hooksd serve: HOOKSD_LOG_LEVEL is 'loud'; it can be debug, info, warning, error\n"
    )
    assert served == []


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (AlreadyRunning("/l", 42), 4, "already running (pid 42; lock /l)"),
        (SocketUnusable("/s", "it is a file"), 1, "cannot use the socket path /s: it is a file"),
        (UnsafePermissions("/d", "it is open"), 1, "refusing /d: it is open"),
        (ServiceError("no room"), 1, "no room"),
    ],
)
def test_why_it_cannot_start(
    monkeypatch: pytest.MonkeyPatch, capsys: Output, error: Exception, status: int, told: str
) -> None:
    def serve(options: daemon.ServeOptions) -> int:
        raise error

    monkeypatch.setattr(daemon, "serve", serve)

    assert main(["serve"]) == status

    err = capsys.readouterr().err
    assert err.startswith("hooksd serve: ")
    assert told in err
    assert err.count("\n") == 1
