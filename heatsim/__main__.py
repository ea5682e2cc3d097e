"""`python -m heatsim`."""

import sys

from heatsim.cli import main

if __name__ == "__main__":
    sys.exit(main())
