"""``python -m rise_core``: evaluate, check and report from a shell."""

from __future__ import annotations

import sys

from rise_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
