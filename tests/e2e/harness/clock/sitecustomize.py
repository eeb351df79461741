"""Python reads this when it starts with this folder in PYTHONPATH: the clock goes ahead by KUBE_HA_TEST_AHEAD_S seconds."""

import os
import time

_now = time.time
_ahead_s = float(os.environ["KUBE_HA_TEST_AHEAD_S"])
time.time = lambda: _now() + _ahead_s
