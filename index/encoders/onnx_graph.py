"""Build the ONNX graph of the bundled model from its weights, with nothing but onnx and numpy.

Operators: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md"""

from __future__ import annotations

from index.encoders.settings import Precision  # first: it sets what the libraries read when they are loaded

# isort: split
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from index.errors import Unavailable

TENSORS = {"F32": np.float32, "F16": np.float16, "I64": np.int64}
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


@dataclass(frozen=True, slots=True)
class BertShape:
    """What config.json says of a BERT encoder that this module can build."""

    layers: int
    heads: int
    epsilon: float


def read_shape(config: Path) -> BertShape:
    """Read the shape in `config`. Raises Unavailable for a model whose graph this module does not know."""
    values = json.loads(config.read_text("utf-8"))
    known = values.get("architectures") == ["BertModel"] and values.get("hidden_act") == "gelu"
    if not known or values.get("position_embedding_type", "absolute") != "absolute":
        raise Unavailable(
            "only a BERT encoder with absolute positions can be built; use a sentence-transformers encoder"
        )
    return BertShape(values["num_hidden_layers"], values["num_attention_heads"], values["layer_norm_eps"])


def map_tensors(file: Path) -> dict[str, np.ndarray]:
    """Map the tensors of a safetensors file, without reading them: 8 bytes of length, a JSON header, the data."""
    data = np.memmap(file, np.uint8, "r")
    length = int(data[:8].view("<u8")[0])
    header = json.loads(bytes(data[8 : 8 + length]))
    arrays = {}
    for key, entry in header.items():
        if key != "__metadata__":
            first, last = (8 + length + offset for offset in entry["data_offsets"])
            arrays[key.removeprefix("bert.")] = data[first:last].view(TENSORS[entry["dtype"]]).reshape(entry["shape"])
    return arrays


@dataclass(frozen=True, slots=True)
class _Graph:
    """A graph in the making: nodes and tensors in the order in which they are added, named by their outputs."""

    shape: BertShape
    weights: Mapping[str, np.ndarray]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)

    def add_tensor(self, label: str, value: np.ndarray) -> str:
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(value), label))
        return label

    def add_node(self, operator: str, inputs: list[str], output: str, *, domain: str = "", **attributes: Any) -> str:
        outputs = [output, f"{output}.mask"] if operator == "EmbedLayerNormalization" else [output]
        self.nodes.append(helper.make_node(operator, inputs, outputs, output, domain=domain, **attributes))
        return output

    def add_weight(self, key: str) -> str:
        return self.add_tensor(key, self.weights[key])

    def add_transposed_weight(self, key: str) -> str:
        return self.add_tensor(key, self.weights[key].T)

    def add_norm(self, hidden: str, residual: str, prefix: str, bias: str, output: str) -> str:
        scale = [self.add_weight(f"{prefix}.weight"), self.add_weight(f"{prefix}.bias")]
        inputs = [hidden, residual, *scale, self.add_weight(bias)]
        epsilon = self.shape.epsilon
        return self.add_node("SkipLayerNormalization", inputs, output, domain="com.microsoft", epsilon=epsilon)


def build(shape: BertShape, weights: Mapping[str, np.ndarray], file: Path, precision: Precision) -> None:
    """Write the graph of `weights` to `file`, its tensors in a file beside it that processes map and share."""
    graph = _Graph(shape, weights)
    ids, mask, types = (graph.add_node("Cast", [name], f"{name}.int32", to=onnx.TensorProto.INT32) for name in INPUTS)
    hidden = _add_embeddings(graph, ids, types, mask)
    for layer in range(shape.layers):
        attended = _add_attention(graph, f"encoder.layer.{layer}", hidden, mask)
        hidden = _add_feed_forward(graph, f"encoder.layer.{layer}", attended)
    _add_pooling(graph, hidden)
    model = _make_model(graph)
    if precision == "int8":
        model = _quantize(model, file)
    onnx.save_model(model, str(file), save_as_external_data=True, location="weights.bin", size_threshold=1024)


def _add_embeddings(graph: _Graph, ids: str, types: str, mask: str) -> str:
    """The sum of the word, position and type embeddings of each token, normalised."""
    tables = [graph.add_weight(f"embeddings.{table}_embeddings.weight") for table in ("word", "position", "token_type")]
    scale = [graph.add_weight(f"embeddings.LayerNorm.{part}") for part in ("weight", "bias")]
    inputs, epsilon = [ids, types, *tables, *scale, mask], graph.shape.epsilon
    return graph.add_node("EmbedLayerNormalization", inputs, "embedded", domain="com.microsoft", epsilon=epsilon)


def _add_attention(graph: _Graph, layer: str, hidden: str, mask: str) -> str:
    """The first half of a layer: attention, projection, and the norm of both with the layer's input."""
    weights = graph.weights
    parts = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
    qkv = graph.add_tensor(
        f"{layer}.qkv.weight", np.concatenate([weights[f"{part}.weight"].T for part in parts], axis=1)
    )
    bias = graph.add_tensor(f"{layer}.qkv.bias", np.concatenate([weights[f"{part}.bias"] for part in parts]))
    inputs, heads = [hidden, qkv, bias, mask], graph.shape.heads
    attended = graph.add_node("Attention", inputs, f"{layer}.attended", domain="com.microsoft", num_heads=heads)
    output = f"{layer}.attention.output"
    projected = graph.add_node(
        "MatMul", [attended, graph.add_transposed_weight(f"{output}.dense.weight")], f"{layer}.projected"
    )
    return graph.add_norm(projected, hidden, f"{output}.LayerNorm", f"{output}.dense.bias", f"{layer}.normed")


def _add_feed_forward(graph: _Graph, layer: str, hidden: str) -> str:
    """The second half of a layer: two dense steps with a GELU between them, and the norm with what came in."""
    wide = graph.add_node(
        "MatMul", [hidden, graph.add_transposed_weight(f"{layer}.intermediate.dense.weight")], f"{layer}.wide"
    )
    inputs = [wide, graph.add_weight(f"{layer}.intermediate.dense.bias")]
    active = graph.add_node("BiasGelu", inputs, f"{layer}.active", domain="com.microsoft")
    narrow = graph.add_node(
        "MatMul", [active, graph.add_transposed_weight(f"{layer}.output.dense.weight")], f"{layer}.narrow"
    )
    return graph.add_norm(narrow, hidden, f"{layer}.output.LayerNorm", f"{layer}.output.dense.bias", f"{layer}.out")


def _add_pooling(graph: _Graph, hidden: str) -> None:
    """Mean over the tokens that are not padding, then unit length."""
    node, put = graph.add_node, graph.add_tensor
    floats = node("Cast", ["attention_mask"], "mask.float", to=1)
    column = node("Unsqueeze", [floats, put("last", np.array([2], np.int64))], "mask.column")
    kept = node("Mul", [hidden, column], "kept")
    tokens, tiny = put("tokens", np.array([1], np.int64)), put("tiny", np.array(1e-12, np.float32))
    total = node("ReduceSum", [kept, tokens], "total", keepdims=0)
    number = node("ReduceSum", [column, tokens], "number", keepdims=0)
    mean = node("Div", [total, number], "mean")
    length = node("ReduceL2", [mean, tokens], "length", keepdims=1)
    node("Div", [mean, node("Max", [length, tiny], "length.safe")], "sentence_embedding")


def _make_model(graph: _Graph) -> onnx.ModelProto:
    """The finished graph with its inputs and its output, as ONNX runs it."""
    size = graph.weights["embeddings.word_embeddings.weight"].shape[1]
    proto = helper.make_graph(
        graph.nodes,
        "memex-encoder",
        [helper.make_tensor_value_info(name, onnx.TensorProto.INT64, ["batch", "tokens"]) for name in INPUTS],
        [helper.make_tensor_value_info("sentence_embedding", onnx.TensorProto.FLOAT, ["batch", size])],
        graph.initializers,
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(proto, ir_version=9, opset_imports=opsets, producer_name="memex")


def _quantize(model: onnx.ModelProto, file: Path) -> onnx.ModelProto:
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
