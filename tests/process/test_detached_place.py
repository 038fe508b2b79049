"""Where a worker must live to outlive the daemon."""

from __future__ import annotations

import pytest

from hooksd.process.detached_place import Keeping, detached_place


USER_SERVICE = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/hooksd.service\n"
USER_SERVICE_V1 = (
    "9:name=systemd:/user.slice/user-1000.slice/user@1000.service/app.slice/hooksd.service\n8:pids:/x\n"
)
SYSTEM_SERVICE = "0::/system.slice/hooksd.service\n"
TERMINAL = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-1.scope\n"
LOGIN = "0::/user.slice/user-1000.slice/session-2.scope\n"
SERVICE_ENV = {"INVOCATION_ID": "1", "XDG_RUNTIME_DIR": "/run/user/1000"}


def find(program: str) -> str | None:
    return f"/usr/bin/{program}"


@pytest.mark.parametrize(
    ("env", "cgroups"),
    [
        ({}, ""),
        ({}, "0::/\n9:name=systemd:/\n"),
        (SERVICE_ENV, TERMINAL),
        (SERVICE_ENV, LOGIN),
        # Below a service, but not as one: a shell in an editor that is a service.
        ({"XDG_RUNTIME_DIR": "/run/user/1000"}, USER_SERVICE),
        (SERVICE_ENV, "garbage"),
    ],
)
def test_a_session_of_its_own_is_enough(env: dict[str, str], cgroups: str) -> None:
    place = detached_place(env, cgroups, find)

    assert place.keeping is Keeping.OWN_SESSION
    assert place.limitation == ""
    assert place.command("inv-1", ("python", "w")) == ("python", "w")


@pytest.mark.parametrize("cgroups", [USER_SERVICE, USER_SERVICE_V1])
@pytest.mark.parametrize("variable", ["INVOCATION_ID", "NOTIFY_SOCKET"])
def test_under_a_users_manager_it_goes_into_a_scope(cgroups: str, variable: str) -> None:
    place = detached_place({variable: "x", "XDG_RUNTIME_DIR": "/run/user/1000"}, cgroups, find)

    assert place.keeping is Keeping.SCOPE
    command = place.command("inv-1", ("python", "w"))
    assert command[:4] == ("/usr/bin/systemd-run", "--user", "--scope", "--collect")
    assert "--unit=hooksd-detached-inv-1" in command
    assert command[-3:] == ("--", "python", "w")


def test_a_system_service_has_no_way_out() -> None:
    place = detached_place(SERVICE_ENV, SYSTEM_SERVICE, find)

    assert place.keeping is Keeping.NOTHING
    assert "system service" in place.limitation
    assert place.command("inv-1", ("w",)) == ("w",)


@pytest.mark.parametrize(
    ("env", "program", "says"),
    [
        (SERVICE_ENV, None, "systemd-run is not on the PATH"),
        ({"INVOCATION_ID": "1"}, "/usr/bin/systemd-run", "XDG_RUNTIME_DIR"),
    ],
)
def test_a_users_service_without_the_means_says_what_is_missing(
    env: dict[str, str], program: str | None, says: str
) -> None:
    place = detached_place(env, USER_SERVICE, lambda _: program)

    assert place.keeping is Keeping.NOTHING
    assert says in place.limitation
