"""Run `hooksd` as `python -m hooksd`."""

import sys

from hooksd.cli.main import main


sys.exit(main())
