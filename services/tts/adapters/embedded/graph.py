"""Cutting ONNX graphs.

Owns: making a smaller graph between given tensors, and declaring an inner tensor as an output. Does
not own: which tensors (the voices know). Nothing is retrained or changed: the same nodes run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def load_graph(path: str) -> Any:
    """Read a model file; a loaded `onnx.ModelProto`."""
    import onnx

    return onnx.load(path)


def declare_output(model: Any, name: str) -> bytes:
    """Return the serialized model with the inner float tensor `name` as one more output."""
    from onnx import TensorProto, helper

    model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    return bytes(model.SerializeToString())


def subgraph(model: Any, inputs: Sequence[str], outputs: Sequence[str]) -> Any:
    """Return the part of `model` that computes `outputs` from `inputs`, a model of its own.

    Names in `inputs` may be inputs of the model or inner float tensors. Raises ValueError when the
    outputs need something else as well.
    """
    from onnx import TensorProto, helper

    graph = model.graph
    declared = {entry.name: entry for entry in graph.input}
    constants = {entry.name: entry for entry in graph.initializer}
    nodes, used, unbound = _needed(graph, frozenset(inputs), outputs, frozenset(constants))
    if unbound:
        raise ValueError(f"the graph between those tensors also needs {sorted(unbound)}")
    part = helper.make_graph(
        nodes,
        "part",
        [
            declared.get(name) or helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
            for name in inputs
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [constants[name] for name in sorted(used)],
    )
    return helper.make_model(part, opset_imports=model.opset_import, ir_version=model.ir_version)


def _needed(
    graph: Any, inputs: frozenset[str], outputs: Sequence[str], constants: frozenset[str]
) -> tuple[list[Any], set[str], set[str]]:
    producer = {output: index for index, node in enumerate(graph.node) for output in node.output}
    wanted: set[int] = set()
    used: set[str] = set()
    unbound: set[str] = set()
    seen: set[str] = set()
    pending = list(outputs)
    while pending:
        name = pending.pop()
        if not name or name in inputs or name in seen:
            continue
        seen.add(name)
        if name in constants:
            used.add(name)
        elif name in producer:
            wanted.add(producer[name])
            pending += graph.node[producer[name]].input
        else:
            unbound.add(name)
    return [graph.node[index] for index in sorted(wanted)], used, unbound
