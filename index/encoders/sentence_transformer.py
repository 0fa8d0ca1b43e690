"""Embed texts with any sentence-transformers model, in torch, on CPU or GPU.

Importing this module takes seconds and 300 MB. Memex never runs code that comes with a model (`trust_remote_code` stays
off)."""

from __future__ import annotations

from index.document_ids import sha256
from index.encoders.settings import (  # first: it sets what the libraries read when they are loaded
    Kind,
    LocalSettings,
    make_identity,
)

# isort: split
import copy
import hashlib
import json
import logging
import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from transformers.utils import logging as transformers_logging

from index.encoders import model_files
from index.errors import Unavailable

transformers_logging.disable_progress_bar()  # "Loading weights" belongs on no daemon's stderr

UNLIMITED = 512
PROMPTS: dict[Kind, tuple[str, ...]] = {"query": ("query",), "document": ("document", "passage", "corpus")}

log = logging.getLogger(__name__)


class LocalEncoder:
    """Encodes queries and a backlog with separate tokenizers and shared weights, so neither waits for the other."""

    def __init__(self, settings: LocalSettings, *, threads: int = 0) -> None:
        self.name = f"the sentence-transformers model {Path(settings.model).name!r}"  # errors show no path of the host
        if threads:
            torch.set_num_threads(threads)
        try:
            folder = _locate(settings, self.name)
            device = None if settings.device == "auto" else settings.device
            model = SentenceTransformer(str(folder), device=device, local_files_only=True)
            if settings.max_tokens is not None:
                model.max_seq_length = settings.max_tokens + _count_special_tokens(model)
            self._lanes = {False: (model, threading.Lock()), True: (_with_own_tokenizer(model), threading.Lock())}
            weights = weights_digest(folder)
        except Unavailable:
            raise
        except Exception as error:  # a model's files can make three libraries raise anything
            log.warning("loading the model %r failed: %s", settings.model, error)
            message = f"{self.name} can't be loaded ({type(error).__name__}, see the log); check `model` and `device`"
            raise Unavailable(message) from error
        self._prompts = {
            "query": _choose_prompt(settings.query_prompt, model, "query"),
            "document": _choose_prompt(settings.document_prompt, model, "document"),
        }
        self.dimensions = int(model.get_embedding_dimension() or 0)
        self.max_tokens = _max_tokens(model) - _count_special_tokens(model)
        self._run = 64 if model.device.type == "cuda" else 4  # on a CPU larger runs are slower: they pad more
        self.batch = self._run * (4 if model.device.type == "cuda" else 2)
        self.identity = make_identity(
            weights=weights,
            pooling=describe_pooling(model),
            tokens=self.max_tokens,
            precision=_precision(model),
            query=self._prompts["query"],
            document=self._prompts["document"],
        )

    def encode(self, texts: Sequence[str], *, kind: Kind, urgent: bool) -> np.ndarray:
        """Return one unit vector for each text, with the prompt of its kind in front."""
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        model, lock = self._lanes[urgent]
        encode = model.encode_query if kind == "query" else model.encode_document
        try:
            with lock:
                vectors: np.ndarray = encode(
                    list(texts),
                    prompt=self._prompts[kind],
                    batch_size=self._run,
                    normalize_embeddings=True,
                    show_progress_bar=False,
                )
        except RuntimeError as error:  # torch's class for everything, a full GPU included
            log.warning("%s failed: %s", self.name, error)
            raise Unavailable(f"{self.name} failed ({type(error).__name__}, see the log); check `device`") from error
        vectors = vectors.astype(np.float32)
        vectors[~vectors.any(axis=1), 0] = 1  # a text without a known word: static models give it no length
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each whole text without special tokens."""
        if not texts:
            return []
        model, lock = self._lanes[True]
        with lock:
            if not callable(model.tokenizer):  # a bare tokenizer, as static embeddings have
                return [
                    len(encoding.ids)
                    for encoding in model.tokenizer.encode_batch(list(texts), add_special_tokens=False)
                ]
            ids = model.tokenizer(
                list(texts), add_special_tokens=False, truncation=False, padding=False, verbose=False
            )["input_ids"]
        return [len(tokens) for tokens in ids]

    def close(self) -> None:
        """Do nothing: a running batch ends by itself."""


def weights_digest(folder: Path) -> str:
    """Return the digest of a model's weights: of a single file, or of all files' digests in order of path."""
    files = sorted(folder.rglob("*.safetensors")) or sorted([*folder.rglob("*.bin"), *folder.rglob("*.pt")])
    digests = []
    for file in files:
        with file.open("rb") as stream:
            digests.append(hashlib.file_digest(stream, "sha256").hexdigest())
    return digests[0] if len(digests) == 1 else sha256("\n".join(digests).encode())


def describe_pooling(model: Any) -> str:
    """Describe how the model makes one vector of its tokens. A Normalize step is left out, because Memex always normalizes."""
    steps: list[Any] = []
    for module in list(model)[1:]:
        kind = type(module).__name__
        if kind != "Normalize":
            steps.append([kind, module.get_config_dict() if hasattr(module, "get_config_dict") else {}])
    if [kind for kind, _ in steps] == ["Pooling"] and steps[0][1].get("include_prompt", True):
        return str(steps[0][1].get("pooling_mode"))
    return json.dumps(steps, sort_keys=True, default=str)


def _with_own_tokenizer(model: Any) -> Any:
    """Return a model with the same weights and a separate tokenizer: two threads must not share one at the same time."""
    first = copy.copy(model[0])
    first._modules = dict(model[0]._modules)  # noqa: SLF001 - a shallow copy shares this dict, and assigning to it
    for name in ("processor", "tokenizer"):
        if name in vars(model[0]):
            setattr(first, name, copy.deepcopy(vars(model[0])[name]))
    return SentenceTransformer(modules=[first, *list(model)[1:]], prompts=model.prompts, device=str(model.device))


def _max_tokens(model: Any) -> int:
    """Return the maximum tokens of a text; static embeddings report infinity, which is no size for a chunk."""
    limit = model.max_seq_length
    return int(limit) if limit and limit < math.inf else UNLIMITED


def _count_special_tokens(model: Any) -> int:
    count = getattr(model.tokenizer, "num_special_tokens_to_add", None)
    return int(count(False)) if count is not None else 0


def _precision(model: Any) -> str:
    """Return the name of the weights' number type; "fp32" on CPU and GPU alike, whose vectors agree."""
    kind = str(next(model.parameters()).dtype).removeprefix("torch.")
    return "fp32" if kind == "float32" else kind


def _locate(settings: LocalSettings, name: str) -> Path:
    """Return the folder of the model. Raises Unavailable if it is not on this machine and may not be downloaded."""
    try:
        return model_files.locate(settings.model, owner="sentence-transformers", download=settings.download)
    except (FileNotFoundError, ValueError) as error:
        if settings.download:
            raise
        log.debug("the model %r is not on this machine: %s", settings.model, error)
        raise Unavailable(f"{name} is not on this machine; check `model`") from error


def _choose_prompt(chosen: str | None, model: Any, kind: Kind) -> str:
    if chosen is not None:
        return chosen
    return next((model.prompts[name] for name in PROMPTS[kind] if model.prompts.get(name)), "")
