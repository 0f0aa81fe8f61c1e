"""What holds for every test: how hard properties are tried, and that Ctrl-C reaches what tests start.

Properties: the same bounded examples every time, or, with HYPOTHESIS_PROFILE=thorough, many.
"""

from __future__ import annotations

import os
import signal

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("thorough", max_examples=2000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# A shell makes what it runs in the background, and all that this starts, deaf to Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
