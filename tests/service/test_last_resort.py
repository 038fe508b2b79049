import signal
import subprocess
import sys

import pytest

from hooksd.service.last_resort import LastResort


def test_a_process_that_hangs_is_ended() -> None:
    code = (
        "import os, threading; from hooksd.service.last_resort import LastResort;"
        "LastResort(0.1, lambda text: os.write(2, text.encode()));"
        "hang = threading.Thread(target=threading.Event().wait); hang.start()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )

    assert done.returncode == 70
    assert done.stderr == "the end takes more than 0.1 s: something hangs; giving up"


_NO_THREAD = """
import sys, threading, time
from hooksd.service.last_resort import LastResort

def refuse(_thread):
    raise RuntimeError("can't start new thread")

threading.Thread.start = refuse
last_resort = LastResort(0.1, sys.stderr.write)
if sys.argv[1] == "orderly":
    last_resort.call_off()
    time.sleep(0.3)
else:
    time.sleep(60)
"""


@pytest.mark.parametrize(("end", "status"), [("orderly", 0), ("hangs", -signal.SIGALRM)])
def test_it_needs_no_thread(end: str, status: int) -> None:
    done = subprocess.run([sys.executable, "-c", _NO_THREAD, end], timeout=30, check=False)

    assert done.returncode == status


def test_called_off_it_does_nothing() -> None:
    told: list[str] = []

    last_resort = LastResort(0.05, told.append)
    last_resort.call_off()
    last_resort._timer.join()

    assert told == []
