"""Loading a diffusers checkpoint: from which place, onto which device, in which precision.

Owns: the way from settings to a pipeline that is ready to run, with every obstacle as one clear
sentence. Does not own: what a pipeline does. Enforces: WEIR-355 (what is missing is named, and that
no video can be generated then), WEIR-356 (only weights that cannot hold code are read). Importing
this imports no model library; `load_pipeline` does.
"""

from __future__ import annotations

import importlib
import json
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from services.video.adapters.base import ModelUnavailableError
from services.video.adapters.diffusion.options import DiffusionOptions

if TYPE_CHECKING:
    import torch

_LOG = logging.getLogger(__name__)
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_INDEX = "model_index.json"
_GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Source:
    """Where a checkpoint is: a folder, or an id of the hub when `folder` is None."""

    name: str
    folder: Path | None

    @property
    def address(self) -> str:
        """What the loader is given."""
        return self.name if self.folder is None else str(self.folder)


def find_source(model: str, model_dir: Path) -> Source:
    """Return where `model` is: a folder, one below `model_dir`, or else the hub.

    Raises ModelUnavailableError for what is neither a folder nor can be an id of the hub.
    """
    for folder in (Path(model), model_dir / model):
        if folder.is_dir():
            name = model if _HUB_ID.fullmatch(model) else folder.resolve().name
            return Source(name, folder)
    if _HUB_ID.fullmatch(model):
        return Source(model, None)
    raise ModelUnavailableError(
        f"the option model names no folder ({model}, also looked for below {model_dir}) and no "
        "model of the hub; no video can be generated"
    )


def load_pipeline(
    pipeline_name: str, source: Source, device_name: str, options: DiffusionOptions
) -> Any:
    """Return the pipeline of `source` on its device, ready for inference. Blocks for minutes.

    Raises ModelUnavailableError for a missing package, device, file or memory, for a checkpoint of
    another pipeline, and when the hub cannot be reached.
    """
    try:
        torch = importlib.import_module("torch")
        diffusers = importlib.import_module("diffusers")
        transformers = importlib.import_module("transformers")
        importlib.import_module("accelerate")
        importlib.import_module("ftfy")  # one pipeline calls it without asking whether it is there
        pipeline_class = getattr(diffusers, pipeline_name)
    except (ImportError, AttributeError, RuntimeError) as error:
        raise ModelUnavailableError(
            f"this video model needs the packages of the extra `diffusers`: {_reason(error)}"
        ) from error
    device = choose_device(device_name)
    dtype = _choose_dtype(options.dtype, device)
    diffusers.utils.logging.disable_progress_bar()
    transformers.utils.logging.disable_progress_bar()
    _check_index(pipeline_class, source, options)
    try:
        pipeline = pipeline_class.from_pretrained(
            source.address,
            revision=options.revision,
            local_files_only=options.offline or source.folder is not None,
            use_safetensors=True,  # WEIR-356: a pickle could run anything
            # The decoder of Wan shows seams in half precision.
            dtype={"default": dtype, "vae": torch.float32},
        )
    except Exception as error:  # whatever a loader raises is the same to the operator
        raise ModelUnavailableError(_unavailable(source, options, error)) from error
    _place(pipeline, device)
    pipeline.set_progress_bar_config(disable=True)
    _LOG.info("loaded %s on %s as %s", source.name, device, dtype)
    return pipeline


def choose_device(name: str) -> torch.device:
    """Return the device called `name`; auto: a GPU where there is one, else the CPU.

    Raises ModelUnavailableError for a device that is not there.
    """
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ModelUnavailableError(
            f"the device {name} cannot be used ({_reason(error)}); no video can be generated"
        ) from error
    return device


def check_memory(needed_bytes: int, free_bytes: int, device: str) -> None:
    """Raise ModelUnavailableError when the weights alone do not fit."""
    if needed_bytes > free_bytes:
        raise ModelUnavailableError(
            f"the weights take {needed_bytes / _GIB:.1f} GiB and {device} has "
            f"{free_bytes / _GIB:.1f} GiB free; no video can be generated"
        )


def _choose_dtype(name: str, device: torch.device) -> torch.dtype:
    import torch

    if name == "auto":
        name = "bfloat16" if device.type == "cuda" else "float32"
    chosen: torch.dtype = getattr(torch, name)
    return chosen


def _check_index(pipeline_class: Any, source: Source, options: DiffusionOptions) -> None:
    """Read what the checkpoint says it is, before anything large is read or fetched."""
    if source.folder is not None:
        index = source.folder / _INDEX
        if not index.is_file():
            raise ModelUnavailableError(
                f"{source.folder} has no {_INDEX}, so it is no diffusers checkpoint; no video can "
                "be generated"
            )
        try:
            found = json.loads(index.read_text("utf-8"))
        except ValueError as error:
            raise ModelUnavailableError(
                f"{index} is not JSON; no video can be generated"
            ) from error
        parts = [name for name, entry in found.items() if isinstance(entry, list)]
        if absent := [name for name in parts if not (source.folder / name).is_dir()]:
            raise ModelUnavailableError(
                f"{source.folder} lacks {', '.join(sorted(absent))}; no video can be generated"
            )
    else:
        try:
            found = pipeline_class.load_config(
                source.address, revision=options.revision, local_files_only=options.offline
            )
        except Exception as error:  # whatever a loader raises is the same to the operator
            raise ModelUnavailableError(_unavailable(source, options, error)) from error
    kind = found.get("_class_name")
    if kind != pipeline_class.__name__:
        raise ModelUnavailableError(
            f"{source.name} is a checkpoint of {kind}; this adapter runs {pipeline_class.__name__}"
        )


def _place(pipeline: Any, device: torch.device) -> None:
    import torch

    modules = [part for part in pipeline.components.values() if isinstance(part, torch.nn.Module)]
    if device.type == "cuda":
        needed = sum(p.numel() * p.element_size() for m in modules for p in m.parameters())
        check_memory(needed, torch.cuda.mem_get_info(device)[0], str(device))
    try:
        pipeline.to(device)
    except torch.OutOfMemoryError as error:
        raise ModelUnavailableError(
            f"{device} has too little memory for the weights; no video can be generated"
        ) from error
    for module in modules:
        module.eval()
        module.requires_grad_(False)


def _unavailable(source: Source, options: DiffusionOptions, error: Exception) -> str:
    reason = _reason(error)
    # WEIR-355: the operator reads what is missing and what to do.
    if source.folder is not None:
        return f"{source.folder} cannot be loaded ({reason}); no video can be generated"
    if options.offline:
        return (
            f"{source.name} is not in the local cache whole, and the option offline forbids to "
            f"fetch it ({reason}); no video can be generated"
        )
    return (
        f"{source.name} cannot be had from the hub ({reason}); no video can be generated. Fetch it "
        "where the hub can be reached, and give its folder as the option model"
    )


def _reason(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
