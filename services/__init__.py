"""The processes of the suite.

Owns: what must be set before any of their modules imports gRPC. Does not own: anything else.
"""

import os

# gRPC's core writes lines of its own form to stderr, past the log. What fails is told there by us,
# and an operator who wants the core's lines sets the variable.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
