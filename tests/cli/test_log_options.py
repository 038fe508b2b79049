from __future__ import annotations

import argparse
import time

import pytest

from hooksd.cli.log_options import Reasons, add_log_arguments, log_file, record_filter


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_log_arguments(parser)
    return parser.parse_args(arguments)


@pytest.mark.parametrize(("age", "seconds"), [("90s", 90), ("10m", 600), ("2h", 7200), ("3d", 259_200)])
def test_since_takes_an_age(age: str, seconds: int) -> None:
    since = record_filter(parsed("--since", age)).since

    assert since is not None
    assert abs(time.time() - seconds - since) < 5


def test_since_takes_a_time() -> None:
    assert record_filter(parsed("--since", "2026-01-31T12:00+00:00")).since == 1_769_860_800.0


def test_a_time_that_is_none_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        record_filter(parsed("--since", "soon"))

    assert ended.value.code == 2
    assert "--since soon: no time" in capsys.readouterr().err


def test_a_log_that_is_not_there_is_told(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        log_file(parsed("--log-file", f"{tmp_path}/none.log"))

    assert ended.value.code == 1
    assert "there is no log at" in capsys.readouterr().err


def test_without_a_daemon_there_are_no_reasons(tmp_path: object) -> None:
    reasons = Reasons(f"{tmp_path}/s")
    assert reasons("some-invocation") is None
    assert reasons("") is None
    reasons.close()
