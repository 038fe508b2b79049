"""A hook that scatters descendants: `scatter.py LOG [clear]`. Each notes its name and pid; then the hook waits.

- `plain`: an everyday child
- `session`: a child in a session of its own
- `stubborn`: forked twice, own session, ignores SIGTERM
- `orphan0`..`orphan2`: their parent has exited, each in a session of its own

With `clear`, those that are orphans throw their environment away, and with it the mark.
"""

import os
import signal
import sys
import time


LOG = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
CLEAR = "clear" in sys.argv


def note(name):
    os.write(LOG, b"%s %d\n" % (name.encode(), os.getpid()))


def linger(*, clear=False):
    os.execve("/bin/sleep", ["sleep", "120"], {} if clear else os.environ)


def in_child(action):
    pid = os.fork()
    if pid == 0:
        try:
            action()
        finally:
            os._exit(1)
    return pid


def plain():
    note("plain")
    linger()


def session():
    os.setsid()
    note("session")
    linger()


def stubborn():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note("stubborn")
    linger(clear=CLEAR)


def daemonize():
    os.setsid()
    in_child(stubborn)
    os._exit(0)


def family():
    os.setsid()
    for number in range(3):

        def orphan(name=f"orphan{number}"):
            os.setsid()
            note(name)
            linger(clear=CLEAR)

        in_child(orphan)
    os._exit(0)


in_child(plain)
in_child(session)


def noted():
    with open(sys.argv[1]) as log:
        return [line.split() for line in log.read().splitlines()]


def is_marked(pid):
    with open(f"/proc/{pid}/environ", "rb") as environment:
        return b"HOOKSD" in environment.read()


for parent in (daemonize, family):
    os.waitpid(in_child(parent), 0)
while len(noted()) < 6:
    time.sleep(0.001)
if CLEAR:
    # They note their names before they throw the environment away.
    while any(is_marked(pid) for name, pid in noted() if name.startswith(("stubborn", "orphan"))):
        time.sleep(0.001)
note("ready")
sys.stdout.write("ready\n")
sys.stdout.flush()
if "exit" in sys.argv:
    os._exit(0)
time.sleep(120)
