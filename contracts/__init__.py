"""What the wire means: validated domain types, the error registry, schemas and vectors.

Owns: the meaning of every message that crosses a boundary. Does not own: transport, scheduling,
models. Imports no grpc (but for the error details in `status`), asyncio, clock or environment, and
nothing of `services` (WEIR-001).
"""
