"""What every video adapter promises, as checks that take any loaded adapter.

Owns: the meaning of the protocol in `services.video.adapters.base`, observed from outside. Does not
own: which adapters there are (`cases`), or what a model's frames should show. Each check raises
AssertionError with what was seen.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from services.video.adapters.base import Frames, Generation, VideoAdapter
from tests.conformance.video_adapters.cases import AdapterCase

Adapter = VideoAdapter[Any, Any, Any]

PROMPTS = ("red sky over a calm sea", "BLUE ICE 42, seen from above")
SEED = 7
CHUNKS = 3


def generation(adapter: Adapter, **changes: Any) -> Generation:
    """A generation of the default size and rate, with a seed."""
    from fractions import Fraction

    capabilities = adapter.capabilities
    asked = Generation(
        capabilities.default_width,
        capabilities.default_height,
        Fraction(capabilities.frames_per_second),
        SEED,
    )
    return replace(asked, **changes)


def never() -> bool:
    """Go on."""
    return False


@dataclass(slots=True)
class Asked:
    """A `should_stop` that says so the `stop_at`-th time, and counts."""

    stop_at: int | None = None
    times: int = 0

    def __call__(self) -> bool:
        self.times += 1
        return self.times == self.stop_at


@dataclass(slots=True)
class Run:
    """A generation in work."""

    adapter: Adapter
    asked: Generation
    prompt: Any
    state: Any = field(init=False)

    def __post_init__(self) -> None:
        self.state = self.adapter.start(self.asked, self.prompt)

    def chunk(self, prompt: Any = None) -> Frames:
        """Generate and decode one chunk."""
        latents = self.adapter.next_chunk(
            self.state, self.prompt if prompt is None else prompt, never
        )
        assert latents is not None, "a chunk that nobody stopped"
        return self.adapter.decode(self.state, latents)

    def close(self) -> None:
        """End it."""
        self.adapter.close(self.state)


def video(adapter: Adapter, asked: Generation, prompts: Iterable[Any]) -> list[Frames]:
    """The chunks of a video, one for each prompt."""
    states = list(prompts)
    run = Run(adapter, asked, states[0])
    chunks = [run.chunk(prompt) for prompt in states]
    run.close()
    return chunks


def same(one: Iterable[Frames], other: Iterable[Frames]) -> bool:
    """Whether two videos are the same, bit by bit."""
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def check_capabilities(adapter: Adapter) -> None:
    """The record agrees with itself, and the default video can be had."""
    capabilities = adapter.capabilities
    width, height = capabilities.default_width, capabilities.default_height
    assert capabilities.nearest_size(width, height) == (width, height)
    sizes = list(capabilities.chunk_sizes(capabilities.default_num_frames))
    assert sum(sizes) == capabilities.default_num_frames
    assert capabilities.prompt_updates
    assert adapter.capabilities == capabilities, "they do not change"


def check_shapes(adapter: Adapter) -> None:
    """Each chunk has the declared count of frames, RGB, eight bits, of the asked size."""
    capabilities = adapter.capabilities
    unit = capabilities.size_multiple
    sizes = [
        (capabilities.default_width, capabilities.default_height),
        (capabilities.default_width + unit, capabilities.default_height),
    ]
    prompt = adapter.encode_prompt(PROMPTS[0])
    for width, height in sizes:
        chunks = video(adapter, generation(adapter, width=width, height=height), [prompt] * 2)
        expected = (capabilities.first_chunk_frames, capabilities.chunk_frames)
        for frames, count in zip(chunks, expected, strict=True):
            assert frames.dtype == np.uint8
            assert frames.shape == (count, height, width, 3)


def check_length(adapter: Adapter) -> None:
    """A bounded video has all its frames, and no chunk after them."""
    most = adapter.capabilities.max_num_frames
    if most is None:
        return
    run = Run(adapter, generation(adapter), adapter.encode_prompt(PROMPTS[0]))
    for count in adapter.capabilities.chunk_sizes(most):
        assert len(run.chunk()) >= count
    with pytest.raises(ValueError, match=str(most)):
        adapter.next_chunk(run.state, run.prompt, never)
    run.close()


def check_seed(adapter: Adapter) -> None:
    """The same seed gives the same frames, another one others."""
    prompt = adapter.encode_prompt(PROMPTS[0])
    made = []
    # Apart from one another in their lowest bits too: some generators read no more.
    for seed, chunks in ((SEED, 2), (0, 1), (3 - 2**63, 1), (2**63 - 1, 1)):
        once, again = (
            video(adapter, generation(adapter, seed=seed), [prompt] * chunks) for _ in range(2)
        )
        assert same(once, again)
        made.append(once[0])
    for index, frames in enumerate(made):
        assert not any(np.array_equal(frames, other) for other in made[:index])


def check_prompts(adapter: Adapter) -> None:
    """The frames follow the prompt, from the chunk on in which it changes."""
    first, second = map(adapter.encode_prompt, PROMPTS)
    asked = generation(adapter)
    plain = video(adapter, asked, [first] * CHUNKS)
    assert not same(plain[:1], video(adapter, asked, [second]))
    changed = video(adapter, asked, [first, second, second])
    assert same(plain[:1], changed[:1])
    assert not same(plain[1:2], changed[1:2])
    assert not same(plain[2:], changed[2:])


def check_blend(adapter: Adapter, case: AdapterCase) -> None:
    """Between two prompts lies a path from one to the other, and neither is changed by it."""
    states = [adapter.encode_prompt(text) for text in PROMPTS]
    source, target = (case.vector(state) for state in states)
    before = (source.copy(), target.copy())

    def at(progress: float) -> NDArray[np.float64]:
        return case.vector(adapter.blend(states[0], states[1], progress))

    distance = float(np.abs(target - source).max())
    np.testing.assert_allclose(at(1e-4), source, atol=distance * 1e-2)
    np.testing.assert_allclose(at(1 - 1e-4), target, atol=distance * 1e-2)
    np.testing.assert_allclose(at(0.5), (source + target) / 2, atol=distance * 1e-3)
    itself = case.vector(adapter.blend(states[0], states[0], 0.3))
    np.testing.assert_allclose(itself, source, atol=distance * 1e-3)
    for state, vector in zip(states, before, strict=True):
        np.testing.assert_array_equal(case.vector(state), vector)


def check_blended_frames(adapter: Adapter) -> None:
    """A blend is a prompt state like another: it generates, and neither end's frames."""
    first, second = map(adapter.encode_prompt, PROMPTS)
    asked = generation(adapter)
    ends = [video(adapter, asked, [prompt]) for prompt in (first, second)]
    between = video(adapter, asked, [adapter.blend(first, second, 0.5)])
    assert not any(same(between, end) for end in ends)


def check_stopping(adapter: Adapter) -> None:
    """Wherever a chunk is stopped, it stops there, and the video goes on as if it had not been."""
    prompt = adapter.encode_prompt(PROMPTS[0])
    asked = generation(adapter)
    expected = video(adapter, asked, [prompt] * CHUNKS)
    run = Run(adapter, asked, prompt)
    stops = 0
    for frames in expected:
        stop_at = 1
        while True:
            should_stop = Asked(stop_at)
            latents = adapter.next_chunk(run.state, prompt, should_stop)
            assert should_stop.times <= stop_at, "asked again after it said stop"
            if latents is not None:
                assert should_stop.times < stop_at
                break
            stops += 1
            stop_at += 1
        assert np.array_equal(adapter.decode(run.state, latents), frames)
    run.close()
    assert stops >= CHUNKS - 1, "it hardly ever asks"


def check_asking(adapter: Adapter) -> None:
    """It asks whether to go on between any two steps, of which a request says how many."""
    if "num_inference_steps" not in adapter.capabilities.options:
        return
    prompt = adapter.encode_prompt(PROMPTS[0])
    for steps in (4, 6):
        run = Run(adapter, generation(adapter, options={"num_inference_steps": steps}), prompt)
        for _ in range(2):
            should_stop = Asked()
            assert adapter.next_chunk(run.state, prompt, should_stop) is not None
            assert should_stop.times >= steps - 1, should_stop.times
        run.close()


def check_sessions(adapter: Adapter) -> None:
    """Generations that take turns are each what they are alone, whatever the others do."""
    prompts = [adapter.encode_prompt(text) for text in PROMPTS]
    asked = [generation(adapter), generation(adapter, seed=SEED + 1)]
    alone = [video(adapter, a, [p] * CHUNKS) for a, p in zip(asked, prompts, strict=True)]
    runs = [Run(adapter, a, p) for a, p in zip(asked, prompts, strict=True)]
    together: list[list[Frames]] = [[], []]
    for _ in range(CHUNKS):
        # One is stopped, and both are generated before either is decoded.
        assert adapter.next_chunk(runs[1].state, prompts[1], Asked(stop_at=1)) is None
        made = [adapter.next_chunk(run.state, run.prompt, never) for run in runs]
        for index in (1, 0):
            assert made[index] is not None
            together[index].append(adapter.decode(runs[index].state, made[index]))
    for run, one, other in zip(runs, alone, together, strict=True):
        run.close()
        assert same(one, other)


def check_memory(adapter: Adapter) -> None:
    """A generation does not grow with its length, and holds nothing once it is closed."""
    run = Run(adapter, generation(adapter), adapter.encode_prompt(PROMPTS[0]))
    held = []
    for _ in range(CHUNKS + 1):
        run.chunk()
        held.append(bytes_held(run.state))
    assert held[1] == held[2] == held[3], held
    run.close()
    gc.collect()
    assert bytes_held(run.state) == 0


def check_refusals(adapter: Adapter, case: AdapterCase) -> None:
    """A parameter of a wrong type or range, or an undeclared one, is refused by its name."""
    prompt = adapter.encode_prompt(PROMPTS[0])
    for options, extra in case.refused:
        names = "|".join((*options, *extra))
        with pytest.raises(ValueError, match=names):
            adapter.start(generation(adapter, options=options, extra_params=extra), prompt)
    if case.refuses_undeclared:
        for changes in ({"options": {"boundary_ratio": 0.5}}, {"extra_params": {"zzz": 1}}):
            assert undeclared(adapter, changes)
            with pytest.raises(ValueError, match=r"boundary_ratio|zzz"):
                adapter.start(generation(adapter, **changes), prompt)


def check_picture(adapter: Adapter) -> None:
    """A first frame changes the video, where the model says that it takes one."""
    if not adapter.capabilities.image_reference:
        return
    asked = generation(adapter)
    rows = np.linspace(0, 255, asked.height, dtype=np.uint8)[:, None, None]
    picture: Frames = np.broadcast_to(rows, (asked.height, asked.width, 3)).copy()
    prompt = adapter.encode_prompt(PROMPTS[0])
    with_picture = video(adapter, replace(asked, image=picture), [prompt] * 2)
    assert not same(video(adapter, asked, [prompt] * 2), with_picture)
    again = video(adapter, replace(asked, image=picture), [prompt] * 2)
    assert same(with_picture, again)


def check_unloaded(adapter: Adapter) -> None:
    """Before a load there is nothing to ask, and unloading it does no harm."""
    with pytest.raises(RuntimeError):
        _ = adapter.capabilities
    adapter.unload()


def undeclared(adapter: Adapter, changes: Mapping[str, Mapping[str, object]]) -> set[str]:
    """The names in `changes` that the adapter does not declare."""
    capabilities = adapter.capabilities
    names = {name for values in changes.values() for name in values}
    return names - capabilities.options - capabilities.extra_params


def bytes_held(value: object) -> int:
    """Bytes of every array and tensor that can be reached from a state."""
    seen: set[int] = set()
    waiting, total = [value], 0
    while waiting:
        found = waiting.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, np.ndarray):
            total += found.nbytes
        elif hasattr(found, "untyped_storage"):
            total += found.untyped_storage().nbytes()
        elif is_dataclass(found):
            waiting += [getattr(found, entry.name) for entry in fields(found)]
        elif isinstance(found, Mapping):
            waiting += list(found.values())
        elif isinstance(found, list | tuple):
            waiting += list(found)
    return total
