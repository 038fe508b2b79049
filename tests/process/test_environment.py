from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given, strategies as st

from hooksd.process import environment
from hooksd.process.environment import EnvironmentRules, Marks, hook_environment


MARKS = Marks(invocation_id="inv-1", execution_id="run-1", socket="/run/s", depth=1)
LAST = {
    "HOOKSD_INVOCATION_ID": "inv-1",
    "HOOKSD_EXECUTION_ID": "run-1",
    "HOOKSD_SOCKET": "/run/s",
    "HOOKSD_DEPTH": "1",
}


def composed(base, *, daemon=False, deny=(), allow_for=None, hook="h", contract=(), own=(), marks=MARKS):
    return hook_environment(
        base,
        daemon=daemon,
        rules=EnvironmentRules(deny, allow_for),
        hook=hook,
        contract=contract,
        own=own,
        marks=marks,
    )


SERVICE = [
    "NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID", "WATCHDOG_USEC", "MANAGERPID",
    "SYSTEMD_EXEC_PID", "INVOCATION_ID", "JOURNAL_STREAM", "RUNTIME_DIRECTORY", "STATE_DIRECTORY", "CACHE_DIRECTORY",
    "LOGS_DIRECTORY", "CONFIGURATION_DIRECTORY", "CREDENTIALS_DIRECTORY",
]  # fmt: skip
START_UP = ["BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "BASH_FUNC_ls%%"]


@pytest.mark.parametrize("daemon", [True, False])
@pytest.mark.parametrize("name", SERVICE + START_UP)
def test_service_and_start_up_variables_are_removed(name, daemon):
    assert composed({name: "x", "PATH": "/bin"}, daemon=daemon) == {"PATH": "/bin", **LAST}


@pytest.mark.parametrize(
    "name", ["MY_STATE_DIRECTORY", "LISTEN", "XDG_RUNTIME_DIR", "ENVIRONMENT", "env", "SHLVL"]
)
def test_what_only_looks_like_it_is_kept(name):
    assert composed({name: "x"})[name] == "x"


@pytest.mark.parametrize("name", ["PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "TRACEPARENT", "TRACESTATE"])
def test_what_is_wrong_only_from_the_daemon(name):
    assert name not in composed({name: "x"}, daemon=True)
    assert composed({name: "x"}, daemon=False)[name] == "x"
    assert composed({name: "x"}, daemon=True, own=[(name, "y")])[name] == "y"


def test_the_order_of_the_layers():
    base = {"A": "base", "B": "base", "C": "base", "HOOKSD_DEPTH": "base"}
    own = [("C", "own"), *((name, "own") for name in LAST)]
    assert composed(base, contract=[("B", "contract"), ("C", "contract")], own=own) == {
        "A": "base",
        "B": "contract",
        "C": "own",
        **LAST,
    }


def test_a_hook_may_set_again_what_was_removed():
    assert composed({}, own=[("BASH_ENV", "x"), ("PYTHONPATH", "y")]) == {
        "BASH_ENV": "x",
        "PYTHONPATH": "y",
        **LAST,
    }


def test_without_a_socket_nobody_can_claim_one():
    marks = Marks(invocation_id="i", execution_id="e", socket=None, depth=0)
    assert "HOOKSD_SOCKET" not in composed({"HOOKSD_SOCKET": "x"}, own=[("HOOKSD_SOCKET", "y")], marks=marks)


def test_traceparent():
    marks = Marks(invocation_id="i", execution_id="e", socket=None, depth=0, traceparent="00-1")
    base = {"TRACEPARENT": "caller"}
    assert composed(base)["TRACEPARENT"] == "caller"
    assert composed(base, own=[("TRACEPARENT", "own")])["TRACEPARENT"] == "own"
    assert composed(base, own=[("TRACEPARENT", "own")], marks=marks)["TRACEPARENT"] == "00-1"


# --- deny


def test_deny_applies_to_the_base_only():
    base = {"AWS_KEY": "1", "MY_TOKEN": "2", "PATH": "/bin"}
    own = [("AWS_REGION", "eu")]
    contract = [("SOME_TOKEN", "t")]
    assert composed(base, deny=["AWS_*", "*_TOKEN"], own=own, contract=contract) == {
        "PATH": "/bin",
        "AWS_REGION": "eu",
        "SOME_TOKEN": "t",
        **LAST,
    }


def test_allow_for_gives_one_hook_an_exception():
    rules = EnvironmentRules(["*SECRET*"], {"bamboo:user:s:id": ["DEPLOY_*"]})
    base = {"DEPLOY_SECRET": "1", "OTHER_SECRET": "2", "ENV": "never"}
    assert rules.cleaned(base, daemon=False, hook="bamboo:user:s:id") == {"DEPLOY_SECRET": "1"}
    assert rules.cleaned(base, daemon=False, hook="bamboo:user:s:other") == {}


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("A", "A", True),
        ("A", "AB", False),
        ("a_*", "A_B", True),
        ("A_*", "a_b", True),
        ("A_*", "A_", True),
        ("A_*", "A", False),
        ("*", "", True),
        ("**", "X", True),
        ("*B", "AB", True),
        ("A*A", "A", False),
        ("A*A", "AA", True),
        ("*A*B*", "xAyBz", True),
        ("*A*B*", "xByAz", False),
        ("A*BC*C", "ABC", False),
        ("A*BC*C", "ABCC", True),
        ("A?", "AB", False),
        ("A?", "A?", True),
        ("[A]", "A", False),
        ("", "A", False),
    ],
)
def test_in_a_pattern_only_the_star_is_special(pattern, name, matches):
    assert (name not in EnvironmentRules([pattern]).cleaned({name: "x"}, daemon=False, hook="h")) == matches


@given(st.text("aB*_", max_size=8), st.text("Ab_", max_size=10))
def test_patterns_mean_what_fnmatch_means_by_a_star(pattern, name):
    denied = name not in EnvironmentRules([pattern]).cleaned({name: "x"}, daemon=False, hook="h")
    assert denied == fnmatch.fnmatchcase(name.lower(), pattern.lower())


# --- the cache


def test_a_result_is_the_callers_own():
    rules = EnvironmentRules()
    base = {"A": "1"}
    first = rules.cleaned(base, daemon=False, hook="h")
    first["B"] = "2"
    assert rules.cleaned(base, daemon=False, hook="h") == {"A": "1"}
    assert base == {"A": "1"}


def test_the_same_mapping_as_daemons_and_as_callers():
    rules = EnvironmentRules()
    base = {"PYTHONPATH": "1"}
    assert rules.cleaned(base, daemon=True, hook="h") == {}
    assert rules.cleaned(base, daemon=False, hook="h") == base


def test_the_cache_is_bounded_and_does_not_mix_up_identities(monkeypatch):
    monkeypatch.setattr(environment, "MAX_CACHED_BASES", 3)
    rules = EnvironmentRules()
    for number in range(200):
        # Each mapping is dropped at once, so that the next one could get its identity.
        assert rules.cleaned({"N": str(number)}, daemon=False, hook="h") == {"N": str(number)}
    assert len(rules._cleaned) == 3
