"""`python -m gvf` is the command `gvf`."""

import sys

from gvf.cli import main

sys.exit(main())
