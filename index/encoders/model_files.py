"""Find the files of a model on this machine, in the named folder or in a snapshot of the Hugging Face cache, and the libraries that run it.

Importing this module is cheap, so Memex reports an unknown name before it loads torch."""

from __future__ import annotations

from index.encoders import settings  # noqa: F401 - first: it sets what the libraries read when they are loaded

# isort: split
import importlib.util
import os
from pathlib import Path
from typing import Final

from index.errors import LibrariesMissing

INSTALL: Final = 'pip install "memex-vault[models]"'
UNUSED = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.gguf"]  # other formats of the same weights


def locate(model: str, *, owner: str, download: bool = False) -> Path:
    """Return the folder of `model`; a name without an owner belongs to `owner`. It is downloaded only if allowed.

    Raises OSError or ValueError when the model is not on this machine."""
    folder = Path(os.path.expanduser(model))  # noqa: PTH111 - Path.expanduser() fails for an unknown user
    if folder.is_dir():
        return folder
    import huggingface_hub  # noqa: PLC0415 - not for a folder

    name = model if "/" in model else f"{owner}/{model}"
    return Path(huggingface_hub.snapshot_download(name, local_files_only=not download, ignore_patterns=UNUSED))


def require_libraries(model: str) -> None:
    """Raise LibrariesMissing unless the libraries that run models are installed; `model` says which model needs them."""
    if importlib.util.find_spec("sentence_transformers") is None:
        message = f"{model} needs libraries that are not installed with Memex; install them and restart: {INSTALL}"
        raise LibrariesMissing(message)
