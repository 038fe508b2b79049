from __future__ import annotations

import resource

import pytest

from hooksd.process import descriptor_limit
from hooksd.process.descriptor_limit import HookLimit, raise_soft_limit


@pytest.fixture
def limits():
    own = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield own
    resource.setrlimit(resource.RLIMIT_NOFILE, own)


def test_the_soft_limit_is_raised_once(limits, monkeypatch):
    hard = limits[1]
    monkeypatch.setattr(descriptor_limit, "WANTED", 600)
    resource.setrlimit(resource.RLIMIT_NOFILE, (500, hard))
    assert raise_soft_limit() == 500
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (600, hard)
    assert raise_soft_limit() is None
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (600, hard)


@pytest.mark.parametrize(
    ("limit", "raised_to"),
    [
        ((100, resource.RLIM_INFINITY), 65_536),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), None),
        ((5, 9), 9),
    ],
)
def test_no_more_than_is_allowed_or_of_use(monkeypatch, limit, raised_to):
    done = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: limit)
    monkeypatch.setattr(resource, "setrlimit", lambda which, new: done.append(new))
    assert raise_soft_limit() == (limit[0] if raised_to else None)
    assert done == ([(raised_to, limit[1])] if raised_to else [])


def test_spawns_that_overlap_share_it(limits):
    limit = HookLimit(400)
    with limit.around_spawn(10):
        with limit.around_spawn(10):
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 400
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 400
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == limits


def test_a_child_that_is_gone_needs_no_limit(helpers):
    HookLimit(100).after_spawn(2**22 - 1, 90)


def test_a_system_without_prlimit(monkeypatch):
    monkeypatch.delattr(resource, "prlimit")
    HookLimit(100).after_spawn(1, 90)
