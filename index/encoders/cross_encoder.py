"""Score how well passages answer a query, with a cross-encoder of sentence-transformers in torch.

The model reads query and passage together. Importing this module takes seconds and 300 MB. Memex never runs code that
comes with a model, and downloads nothing."""

from __future__ import annotations

from index.encoders.settings import SAMPLE  # first: it sets what the libraries read when they are loaded

# isort: split
import logging
import os
from collections.abc import Sequence
from pathlib import Path

import torch
from sentence_transformers import CrossEncoder
from transformers.utils import logging as transformers_logging

from index.errors import Unavailable

transformers_logging.disable_progress_bar()  # as in sentence_transformer.py

LONGEST = 512  # most tokens of query and passage together
HEADS = ("ForSequenceClassification", "ForCausalLM")  # the kinds of model that are trained to judge a pair

log = logging.getLogger(__name__)


class RerankerModel:
    """Wraps one model, for use by one thread."""

    def __init__(self, folder: Path, name: str, *, threads: int = 0) -> None:
        self.name = f"the model {name!r}"  # errors show no path of the host
        torch.set_num_threads(threads or min(4, os.cpu_count() or 1))
        try:
            model = CrossEncoder(str(folder), local_files_only=True, activation_fn=torch.nn.Sigmoid())
            config = model[0].model.config
        except Exception as error:  # a model's files can make three libraries raise anything
            log.warning("loading the reranker %r failed: %s", name, error)
            raise Unavailable(f"{self.name} can't be loaded ({type(error).__name__}, see the log)") from error
        made_as = next(iter(config.architectures or ()), "")
        if not made_as.endswith(HEADS) or model.num_labels != 1:
            raise Unavailable(f"{self.name} is not a reranker: it does not give one score for a query and a passage")
        words = model.tokenizer(SAMPLE, add_special_tokens=False)["input_ids"]
        if {*words} <= {model.tokenizer.unk_token_id}:
            raise Unavailable(f"{self.name} can't be used: it has no vocabulary")
        room = getattr(config, "max_position_embeddings", LONGEST)
        model.max_seq_length = min(LONGEST, room, model.max_seq_length or LONGEST)
        self._model = model

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """Return how well each passage answers `query`, 0..1, by the model's sigmoid. Raises Unavailable."""
        try:
            scores = self._model.predict(
                [(query, passage) for passage in passages], batch_size=len(passages), show_progress_bar=False
            )
        except RuntimeError as error:  # torch's class for everything, a full GPU included
            log.warning("%s failed: %s", self.name, error)
            raise Unavailable(f"{self.name} failed ({type(error).__name__}, see the log)") from error
        return [float(score) for score in scores]
