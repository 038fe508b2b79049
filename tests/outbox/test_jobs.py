from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from hooksd.outbox.jobs import job_name, job_number


@given(st.integers(0, 2**63 - 1))
def test_a_name_leads_back_to_its_number(number: int) -> None:
    assert job_number(job_name(number)) == number


@given(st.integers(0, 2**63 - 2))
def test_later_jobs_have_greater_names(number: int) -> None:
    assert job_name(number) < job_name(number + 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "job-",
        "job-1",
        "0000000000000001",
        "job-000000000000000G",
        "job-00000000000000001",
        "job-ffffffffffffffff",
        "job- 00000000000001",
    ],
)
def test_what_is_no_name(text: str) -> None:
    assert job_number(text) is None
