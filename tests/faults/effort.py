"""How much the tests of faults try: FISHPOOL_FAULTS=N asks for N times what `make test` tries. It holds no test."""

import os

EFFORT = int(os.environ.get("FISHPOOL_FAULTS", "1"))
