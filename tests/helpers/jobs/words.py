"""Prints, as JSON, the arguments and some variables it was given."""

import json
import os
import sys

shown = {n: v for n, v in os.environ.items() if n.startswith(("DMLC_", "PS_", "T_"))}
print(json.dumps({"argv": sys.argv[1:], "env": shown, "port": os.environ["PORT"]}))
