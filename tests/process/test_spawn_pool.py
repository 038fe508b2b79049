from __future__ import annotations

import signal
import threading

from hooksd.process.spawn_pool import SpawnPool


def test_jobs_run_in_two_threads_that_do_not_keep_the_process_alive():
    pool = SpawnPool()
    both = threading.Barrier(3)
    seen = []

    def job() -> None:
        thread = threading.current_thread()
        seen.append((thread.name, thread.daemon))
        both.wait(10)

    pool.submit(job)
    pool.submit(job)
    both.wait(10)
    assert sorted(seen) == [("hooksd-spawn-0", True), ("hooksd-spawn-1", True)]
    pool.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("hooksd-spawn")]


def test_jobs_given_before_the_end_are_done():
    pool = SpawnPool()
    done = []
    for number in range(10):
        pool.submit(lambda number=number: done.append(number))
    pool.close()
    assert sorted(done) == list(range(10))


def test_the_threads_block_no_signal():
    masks = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
    try:
        pool = SpawnPool()
        pool.submit(lambda: masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
        pool.close()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert masks == [set()]
