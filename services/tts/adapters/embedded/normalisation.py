"""Letting windows of a long signal be normalised alike.

Owns: changing the instance normalisations of an ONNX decoder so that they mix what they see with
statistics from outside, and give the mixture back. Does not own: how much of each (`kokoro_voice`).

An instance normalisation takes mean and variance over all the frames it is given. In a window of
one second those are not the ones of the whole clause, and the speech gets blurred. With the
statistics of what was heard before mixed in, a window sounds as it does inside the whole (the
figures stand in docs/reference/voices.md). With a weight of 0 the decoder is the published one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WEIGHT, _KEEP = "statistics.weight", "statistics.keep"


@dataclass(frozen=True, slots=True)
class Statistics:
    """Mean and variance of every normalisation, and over how many frames they were taken."""

    values: tuple[NDArray[np.float32], ...]
    frames: int


@dataclass(frozen=True, slots=True)
class StatisticsPorts:
    """Names of the inputs and outputs that were added, in the order of `Statistics.values`."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def feeds(self, before: Statistics | None, frames: int) -> dict[str, NDArray[np.float32]]:
        """Return the inputs for a window of `frames`; before None: the window alone counts."""
        if before is None:
            nothing = np.zeros((1, 1, 1), np.float32)
            return {**dict.fromkeys(self.inputs, nothing), **_mixture(0.0)}
        weight = before.frames / (before.frames + frames)
        return {**dict(zip(self.inputs, before.values, strict=True)), **_mixture(weight)}


def share_statistics(model: Any) -> StatisticsPorts:
    """Change `model` in place. Raises ValueError when it has no instance normalisation."""
    from onnx import NodeProto, TensorProto, helper

    graph = model.graph
    following: dict[str, list[Any]] = {}
    names: list[str] = []
    for index, norm in enumerate(_normalisations(graph)):
        mean, variance = norm.mean.output[0], norm.variance.output[0]
        outside_mean, outside_variance = f"statistics.mean.{index}", f"statistics.variance.{index}"
        mixed_mean, mixed_variance = f"{outside_mean}.mixed", f"{outside_variance}.mixed"
        _rewire(norm.centre, mean, mixed_mean)
        _rewire(norm.scale, variance, mixed_variance)
        following[mean] = _mix(mean, outside_mean, mixed_mean)
        # The outside variance was taken around another mean; moved to the mixed one it grows.
        shift, square, moved = (
            f"{outside_variance}.{step}" for step in ("shift", "square", "moved")
        )
        following[variance] = [
            helper.make_node("Sub", [outside_mean, mixed_mean], [shift]),
            helper.make_node("Mul", [shift, shift], [square]),
            helper.make_node("Add", [square, outside_variance], [moved]),
            *_mix(variance, moved, mixed_variance),
        ]
        names += [outside_mean, outside_variance]
    if not names:
        raise ValueError("the graph has no instance normalisation")
    nodes = [
        NodeProto.FromString(node.SerializeToString())
        for original in graph.node
        for node in (original, *following.get(original.output[0], ()))
    ]
    del graph.node[:]
    graph.node.extend(nodes)
    ports = StatisticsPorts(tuple(names), tuple(f"{name}.mixed" for name in names))
    for name in (*ports.inputs, _WEIGHT, _KEEP):
        graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    for name in ports.outputs:
        graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    return ports


@dataclass(frozen=True, slots=True)
class _Normalisation:
    """Nodes of one: (x - mean), then divided by the root of (variance + a little)."""

    mean: Any
    centre: Any
    variance: Any
    scale: Any


def _normalisations(graph: Any) -> Iterator[_Normalisation]:
    producer = {output: node for node in graph.node for output in node.output}
    consumer = {name: node for node in graph.node for name in node.input}
    for variance in graph.node:
        scale = consumer.get(variance.output[0])
        if variance.op_type != "ReduceMean" or scale is None or scale.op_type != "Add":
            continue
        square = producer.get(variance.input[0])
        centre = producer.get(square.input[0]) if square is not None else None
        mean = producer.get(centre.input[1]) if centre is not None else None
        kinds = [node.op_type for node in (centre, mean) if node is not None]
        if kinds == ["Sub", "ReduceMean"]:
            yield _Normalisation(mean, centre, variance, scale)


def _mix(inside: str, outside: str, mixed: str) -> list[Any]:
    from onnx import helper

    return [
        helper.make_node("Mul", [inside, _KEEP], [f"{mixed}.inside"]),
        helper.make_node("Mul", [outside, _WEIGHT], [f"{mixed}.outside"]),
        helper.make_node("Add", [f"{mixed}.inside", f"{mixed}.outside"], [mixed]),
    ]


def _rewire(node: Any, old: str, new: str) -> None:
    for position, name in enumerate(node.input):
        if name == old:
            node.input[position] = new


def _mixture(weight: float) -> dict[str, NDArray[np.float32]]:
    return {
        _WEIGHT: np.asarray([weight], np.float32),
        _KEEP: np.asarray([1.0 - weight], np.float32),
    }
