"""The graph of the bundled model, built from its weights with nothing but onnx and numpy.

Operators: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md"""

from __future__ import annotations

from index.encoders.settings import Precision  # first: it sets what the libraries read when they are loaded

# isort: split
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from index.errors import Unavailable

TENSORS = {"F32": np.float32, "F16": np.float16, "I64": np.int64}


@dataclass(frozen=True, slots=True)
class Shape:
    """What config.json says of a BERT encoder that this module can build."""

    layers: int
    heads: int
    epsilon: float


def shape(config: Path) -> Shape:
    """The shape in `config`. Raises Unavailable for a model whose graph this module does not know."""
    values = json.loads(config.read_text("utf-8"))
    known = values.get("architectures") == ["BertModel"] and values.get("hidden_act") == "gelu"
    if not known or values.get("position_embedding_type", "absolute") != "absolute":
        raise Unavailable(
            "only a BERT encoder with absolute positions can be built; use a sentence-transformers encoder"
        )
    return Shape(values["num_hidden_layers"], values["num_attention_heads"], values["layer_norm_eps"])


def tensors(file: Path) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file, mapped, not read: 8 bytes of length, a JSON header, the data."""
    data = np.memmap(file, np.uint8, "r")
    length = int(data[:8].view("<u8")[0])
    header = json.loads(bytes(data[8 : 8 + length]))
    found = {}
    for key, entry in header.items():
        if key != "__metadata__":
            first, last = (8 + length + offset for offset in entry["data_offsets"])
            found[key.removeprefix("bert.")] = data[first:last].view(TENSORS[entry["dtype"]]).reshape(entry["shape"])
    return found


def build(shape: Shape, weights: Mapping[str, np.ndarray], file: Path, precision: Precision) -> None:
    """Write the graph of `weights` to `file`, its tensors in a file beside it that processes map and share."""
    size = weights["embeddings.word_embeddings.weight"].shape[1]
    nodes: list[onnx.NodeProto] = []
    initializers: list[onnx.TensorProto] = []

    def put(label: str, value: np.ndarray) -> str:
        initializers.append(numpy_helper.from_array(np.ascontiguousarray(value), label))
        return label

    def node(operator: str, inputs: list[str], output: str, *, domain: str = "", **attributes: Any) -> str:
        outputs = [output, f"{output}.mask"] if operator == "EmbedLayerNormalization" else [output]
        nodes.append(helper.make_node(operator, inputs, outputs, output, domain=domain, **attributes))
        return output

    def weight(key: str) -> str:
        return put(key, weights[key])

    def dense(key: str) -> str:
        return put(key, weights[key].T)

    def norm(hidden: str, residual: str, prefix: str, bias: str, output: str) -> str:
        inputs = [hidden, residual, weight(f"{prefix}.weight"), weight(f"{prefix}.bias"), weight(bias)]
        return node("SkipLayerNormalization", inputs, output, domain="com.microsoft", epsilon=shape.epsilon)

    def integers(label: str) -> str:
        return node("Cast", [label], f"{label}.int32", to=onnx.TensorProto.INT32)

    ids, mask, types = (integers(label) for label in ("input_ids", "attention_mask", "token_type_ids"))
    tables = [weight(f"embeddings.{table}_embeddings.weight") for table in ("word", "position", "token_type")]
    scale = [weight(f"embeddings.LayerNorm.{part}") for part in ("weight", "bias")]
    embed = [ids, types, *tables, *scale, mask]
    hidden = node("EmbedLayerNormalization", embed, "embedded", domain="com.microsoft", epsilon=shape.epsilon)
    for layer in range(shape.layers):
        at = f"encoder.layer.{layer}"
        parts = [f"{at}.attention.self.{part}" for part in ("query", "key", "value")]
        qkv = put(f"{at}.qkv.weight", np.concatenate([weights[f"{part}.weight"].T for part in parts], axis=1))
        bias = put(f"{at}.qkv.bias", np.concatenate([weights[f"{part}.bias"] for part in parts]))
        inputs = [hidden, qkv, bias, mask]
        attended = node("Attention", inputs, f"{at}.attended", domain="com.microsoft", num_heads=shape.heads)
        out = f"{at}.attention.output"
        projected = node("MatMul", [attended, dense(f"{out}.dense.weight")], f"{at}.projected")
        hidden = norm(projected, hidden, f"{out}.LayerNorm", f"{out}.dense.bias", f"{at}.normed")
        wide = node("MatMul", [hidden, dense(f"{at}.intermediate.dense.weight")], f"{at}.wide")
        gelu = [wide, weight(f"{at}.intermediate.dense.bias")]
        active = node("BiasGelu", gelu, f"{at}.active", domain="com.microsoft")
        narrow = node("MatMul", [active, dense(f"{at}.output.dense.weight")], f"{at}.narrow")
        hidden = norm(narrow, hidden, f"{at}.output.LayerNorm", f"{at}.output.dense.bias", f"{at}.out")
    _pool(node, put, hidden)
    names = ("input_ids", "attention_mask", "token_type_ids")
    graph = helper.make_graph(
        nodes,
        "memex-encoder",
        [helper.make_tensor_value_info(label, onnx.TensorProto.INT64, ["batch", "tokens"]) for label in names],
        [helper.make_tensor_value_info("sentence_embedding", onnx.TensorProto.FLOAT, ["batch", size])],
        initializers,
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, ir_version=9, opset_imports=opsets, producer_name="memex")
    if precision == "int8":
        model = _quantized(model, file)
    onnx.save_model(model, str(file), save_as_external_data=True, location="weights.bin", size_threshold=1024)


def _pool(node: Callable[..., str], put: Callable[[str, np.ndarray], str], hidden: str) -> None:
    """Mean over the tokens that are not padding, then unit length."""
    floats = node("Cast", ["attention_mask"], "mask.float", to=1)
    column = node("Unsqueeze", [floats, put("last", np.array([2], np.int64))], "mask.column")
    kept = node("Mul", [hidden, column], "kept")
    tokens, tiny = put("tokens", np.array([1], np.int64)), put("tiny", np.array(1e-12, np.float32))
    total = node("ReduceSum", [kept, tokens], "total", keepdims=0)
    number = node("ReduceSum", [column, tokens], "number", keepdims=0)
    mean = node("Div", [total, number], "mean")
    length = node("ReduceL2", [mean, tokens], "length", keepdims=1)
    node("Div", [mean, node("Max", [length, tiny], "length.safe")], "sentence_embedding")


def _quantized(model: onnx.ModelProto, file: Path) -> onnx.ModelProto:
    """`model` with int8 weights, one scale a column (one scale a matrix would spoil it)."""
    helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})  # fused already: no warning about it
    plain, small = file.with_name("plain.onnx"), file.with_name("small.onnx")
    onnx.save_model(model, str(plain))
    quantize_dynamic(
        plain,
        small,
        weight_type=QuantType.QInt8,
        per_channel=True,
        op_types_to_quantize=["MatMul", "Attention"],
        extra_options={"DefaultTensorType": 1},  # FLOAT: the operators of com.microsoft carry no type of their own
    )
    quantized = onnx.load(str(small))
    plain.unlink()
    small.unlink()
    return quantized
