"""A hook with a descendant that forks and exits again and again, in new sessions: `chain.py LOG`.

It ends by itself after some thousand links, which take seconds; `end` is noted only then.
"""

import os
import sys
import time


LOG = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def note(name):
    os.write(LOG, b"%s %d\n" % (name.encode(), os.getpid()))


if os.fork() == 0:
    for link in range(3000):
        if os.fork():
            os._exit(0)
        os.setsid()
        if link % 50 == 0:
            note(f"link{link}")
        time.sleep(0.0005)
    note("end")
    time.sleep(120)
note("ready")
time.sleep(120)
