"""Loading a checkpoint: every obstacle is one sentence that says what is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from services.video.adapters.anyflow_far.adapter import AnyFlowFarAdapter
from services.video.adapters.base import ModelUnavailableError
from services.video.adapters.diffusion.checkpoint import Source, check_memory, find_source
from services.video.adapters.helios.adapter import HeliosAdapter
from services.video.adapters.settings import AdapterSettings
from tests.conformance.video_adapters import tiny
from tests.processes import ROOT
from tests.unit.video.adapters.driving import PROMPT, Stops, asked, chunks, loaded

pytestmark = tiny.LIBRARY_WARNINGS

UNREACHABLE = "http://127.0.0.1:9"
"""An address at which nobody listens."""


@pytest.fixture
def copied(helios_folder: Path, tmp_path: Path) -> Path:
    """A checkpoint that a test may break."""
    return shutil.copytree(helios_folder, tmp_path / "checkpoint")


def refusal(folder: Path, *, device: str = "cpu", **options: str) -> str:
    """The sentence with which a checkpoint is refused; nothing is loaded then."""
    settings = AdapterSettings(folder, device, tiny.tiny_options(folder, **options))
    adapter = HeliosAdapter(settings)
    with pytest.raises(ModelUnavailableError) as refused:
        adapter.load()
    with pytest.raises(RuntimeError, match="not loaded"):
        _ = adapter.capabilities
    adapter.unload()
    return str(refused.value)


def test_a_model_is_a_folder_or_one_below_the_model_folder_or_of_the_hub(tmp_path: Path) -> None:
    """WEIR-355: in that order, and what it is served as does not tell where it lies."""
    (tmp_path / "Some" / "Model-1").mkdir(parents=True)
    inside = tmp_path / "Some" / "Model-1"
    assert find_source(str(inside), tmp_path) == Source("Model-1", inside)
    assert find_source("Some/Model-1", tmp_path) == Source("Some/Model-1", inside)
    assert find_source("Other/Model-1", tmp_path) == Source("Other/Model-1", None)
    for name in ("nothing", "/no/such/folder", "a/b/c"):
        with pytest.raises(ModelUnavailableError, match="names no folder"):
            find_source(name, tmp_path)


def test_a_folder_without_an_index_is_no_checkpoint(copied: Path) -> None:
    """WEIR-355: found before anything is read."""
    (copied / "model_index.json").unlink()
    assert "has no model_index.json" in refusal(copied)


def test_an_index_that_is_not_json_is_told(copied: Path) -> None:
    """WEIR-355: with its path."""
    (copied / "model_index.json").write_text("{", encoding="utf-8")
    assert "model_index.json is not JSON" in refusal(copied)


@pytest.mark.parametrize("part", ["vae", "text_encoder", "tokenizer", "transformer", "scheduler"])
def test_a_missing_part_is_named(copied: Path, part: str) -> None:
    """WEIR-355: the operator reads which folder to fetch."""
    shutil.rmtree(copied / part)
    assert f"lacks {part}" in refusal(copied)


@pytest.mark.parametrize(
    "weights",
    [
        "vae/diffusion_pytorch_model.safetensors",
        "transformer/diffusion_pytorch_model.safetensors",
        "text_encoder/model.safetensors",
    ],
)
def test_missing_or_broken_weights_are_told(copied: Path, weights: str) -> None:
    """WEIR-355: a file that is not there, and one that was cut short."""
    file = copied / weights
    file.write_bytes(file.read_bytes()[:1000])
    assert "cannot be loaded" in refusal(copied)
    file.unlink()
    message = refusal(copied)
    assert "cannot be loaded" in message
    assert "no video can be generated" in message


def test_weights_that_could_hold_code_are_not_read(copied: Path) -> None:
    """WEIR-356: a pickle in the place of the weights is left alone."""
    import torch

    for name in ("vae", "transformer"):
        file = copied / name / "diffusion_pytorch_model.safetensors"
        file.unlink()
        torch.save({}, file.with_suffix(".bin"))
    assert "cannot be loaded" in refusal(copied)


def test_a_checkpoint_of_another_pipeline_is_refused(copied: Path, far_folder: Path) -> None:
    """WEIR-355: with both names, and both ways."""
    assert "is a checkpoint of AnyFlowFARPipeline" in refusal(far_folder)
    index = copied / "model_index.json"
    found = json.loads(index.read_text("utf-8"))
    index.write_text(json.dumps({**found, "_class_name": "HeliosPipeline"}), encoding="utf-8")
    assert "is a checkpoint of HeliosPipeline; this adapter runs HeliosPyramid" in refusal(copied)


def test_offline_means_that_nothing_is_fetched(helios_folder: Path) -> None:
    """WEIR-355: what is not in the cache is missing, at once."""
    message = refusal(helios_folder, model="Nobody/Nothing", offline="true")
    assert "Nobody/Nothing is not in the local cache whole, and the option offline" in message


@pytest.mark.slow  # the hub's client tries for half a minute
def test_a_hub_that_cannot_be_reached_is_told(tmp_path: Path) -> None:
    """WEIR-355: with what to do about it."""
    message = _without_hub(tmp_path, "Nobody/Nothing")
    assert "Nobody/Nothing cannot be had from the hub" in message
    assert "give its folder as the option model" in message


@pytest.mark.parametrize("device", ["cuda:7", "nonsense", "meta:x"])
def test_a_device_that_is_not_there_is_named(helios_folder: Path, device: str) -> None:
    """WEIR-355: nothing is read for it."""
    assert f"the device {device} cannot be used" in refusal(helios_folder, device=device)


def test_weights_that_do_not_fit_are_told_with_both_figures() -> None:
    """WEIR-355: before they are moved, in units that an operator reads."""
    with pytest.raises(ModelUnavailableError, match=r"take 30\.0 GiB and cuda:0 has 24\.0 GiB"):
        check_memory(30 * 2**30, 24 * 2**30, "cuda:0")
    check_memory(24 * 2**30, 24 * 2**30, "cuda:0")


@pytest.mark.parametrize("package", ["torch", "diffusers", "transformers", "accelerate", "ftfy"])
def test_a_package_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    """WEIR-355: with the extra that brings it; unloading needs none of them."""
    if package != "torch" and tiny.lacking() is not None:
        pytest.skip("another one is missing before it")
    monkeypatch.setitem(sys.modules, package, None)
    message = refusal(tmp_path, device="auto")
    assert "the extra `diffusers`" in message
    assert package in message


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"width": "96", "height": "64"}, "multiple"),
        ({"steps": "2"}, "at least 3"),
    ],
)
def test_options_that_do_not_go_with_the_model_are_refused(
    helios_folder: Path, options: dict[str, str], told: str
) -> None:
    """WEIR-355: an operator's mistake is found when the service starts."""
    assert told in refusal(helios_folder, **options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dtype", "float8"),
        ("blend", "cubic"),
        ("steps", "0"),
        ("max_sequence_length", "0"),
        ("width", "640"),
        ("offline", "maybe"),
        ("colour", "red"),
    ],
)
def test_wrong_options_are_refused_by_the_constructor(name: str, value: str) -> None:
    """WEIR-355: before anything is loaded."""
    with pytest.raises(ValueError, match=name):
        HeliosAdapter(AdapterSettings(options={name: value}))


def test_warming_up_finds_what_loading_does_not(copied: Path) -> None:
    """WEIR-355: a model that cannot generate is not called loaded."""
    config = copied / "scheduler" / "scheduler_config.json"
    found = json.loads(config.read_text("utf-8"))
    config.write_text(json.dumps({**found, "gamma": 0.4}), encoding="utf-8")
    assert "was loaded but cannot generate 64x64 here" in refusal(copied, warm_up="true")


def test_warming_up_changes_no_frame(helios_folder: Path) -> None:
    """WEIR-352: the first generation after it is as any other."""
    cold = chunks(loaded(HeliosAdapter, helios_folder), asked(), 1, Stops())
    warm = chunks(loaded(HeliosAdapter, helios_folder, warm_up="true"), asked(), 1, Stops())
    assert (cold.frames[0] == warm.frames[0]).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_a_dtype_is_that_of_transformer_and_prompts(helios_folder: Path, dtype: str) -> None:
    """WEIR-353: prompts have the transformer's precision, mixed ones too; frames stay frames."""
    import torch

    adapter = loaded(HeliosAdapter, helios_folder, dtype=dtype)
    prompt = adapter.encode_prompt(PROMPT)
    assert prompt.tensor.dtype == getattr(torch, dtype)
    assert adapter.blend(prompt, prompt, 0.5).tensor.dtype == prompt.tensor.dtype
    made = chunks(adapter, asked(), 2, Stops())
    assert [len(frames) for frames in made.frames] == [33, 33]


def test_unloading_is_final_and_can_be_repeated(far_folder: Path) -> None:
    """WEIR-352: afterwards there is nothing to generate with."""
    adapter = loaded(AnyFlowFarAdapter, far_folder)
    prompt = adapter.encode_prompt(PROMPT)
    state = adapter.start(asked(), prompt)
    adapter.unload()
    adapter.unload()
    adapter.close(state)
    with pytest.raises(RuntimeError, match="not loaded"):
        adapter.encode_prompt(PROMPT)


@pytest.mark.parametrize("adapter", ["helios.adapter", "anyflow_far.adapter", "registry"])
def test_importing_an_adapter_imports_no_model_library(adapter: str) -> None:
    """WEIR-359: the service starts, and reports what is missing, without any of them."""
    code = (
        "import sys\n"
        f"import services.video.adapters.{adapter}\n"
        "heavy = {'torch', 'diffusers', 'transformers', 'accelerate'} & set(sys.modules)\n"
        "print(sorted(heavy))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def _without_hub(tmp_path: Path, model: str) -> str:
    """Load a model of the hub where there is no hub; the libraries read that when imported."""
    reason = tiny.lacking()
    if reason is not None:
        pytest.skip(reason)
    code = (
        "from services.video.adapters.helios.adapter import HeliosAdapter\n"
        "from services.video.adapters.base import ModelUnavailableError\n"
        "from services.video.adapters.settings import AdapterSettings\n"
        "try:\n"
        f"    HeliosAdapter(AdapterSettings(options={{'model': {model!r}}})).load()\n"
        "except ModelUnavailableError as error:\n"
        "    print(error)\n"
    )
    environment = {**os.environ, "HF_ENDPOINT": UNREACHABLE, "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
