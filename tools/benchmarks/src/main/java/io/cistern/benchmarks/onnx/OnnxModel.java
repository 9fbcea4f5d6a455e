package io.cistern.benchmarks.onnx;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Random;

/// Writes ONNX models with weights drawn from a seed, so that no model has to be shipped.
final class OnnxModel {
    private static final int FLOAT = 1;
    private static final int INTEGERS = 7;
    private static final int INTEGER = 2;
    private static final int OPERATORS_VERSION = 13;
    /// Only that many values are drawn, then repeated: the cost of a product does not depend on its values.
    private static final int DRAWN = 4096;

    private static final List<ProtocolBuffer> NONE = List.of();

    private final Random random;
    private final ProtocolBuffer graph = new ProtocolBuffer();
    private final ProtocolBuffer weights = new ProtocolBuffer();
    private int count;

    private OnnxModel(long seed) {
        random = new Random(seed);
    }

    /// Writes a transformer encoder: input `x` of (batch, length, width), output `out` of (batch, width).
    static byte[] encoder(int layers, int width, long seed) {
        OnnxModel model = new OnnxModel(seed);
        String x = "x";
        for (int layer = 0; layer < layers; layer++) {
            x = model.encoderLayer(x, width);
        }
        model.node("ReduceMax", "out", List.of(integers("axes", 1), integer("keepdims", 0)), x);
        return model.bytes(new Object[] {"b", "l", (long) width}, new Object[] {"b", (long) width});
    }

    private String encoderLayer(String x, int width) {
        String key = node("Transpose", next(), List.of(integers("perm", 0, 2, 1)), product(x, width, width));
        String scores = node("MatMul", next(), NONE, product(x, width, width), key);
        String shares = node("Softmax", next(), List.of(integer("axis", -1)), scores);
        String attended = node("MatMul", next(), NONE, shares, product(x, width, width));
        String a = node("Add", next(), NONE, x, attended);
        String hidden = node("Relu", next(), NONE, product(a, width, 4 * width));
        String y = node("Add", next(), NONE, a, product(hidden, 4 * width, width));
        return node("Tanh", next(), NONE, y);
    }

    /// Writes a network of convolutions with shortcuts: input `x` of (batch, 3, height, width), output `out`
    /// of (batch, channels).
    static byte[] convolutions(int blocks, int channels, long seed) {
        OnnxModel model = new OnnxModel(seed);
        String x = model.convolution("x", 3, channels, 7, 2);
        for (int block = 0; block < blocks; block++) {
            String inner = model.node("Relu", model.next(), NONE, model.convolution(x, channels, channels, 3, 1));
            String sum = model.node("Add", model.next(), NONE, x, model.convolution(inner, channels, channels, 3, 1));
            x = model.node("Tanh", model.next(), NONE, sum);
        }
        model.node("ReduceMax", "out", List.of(integers("axes", 2, 3), integer("keepdims", 0)), x);
        return model.bytes(new Object[] {"b", 3L, "h", "w"}, new Object[] {"b", (long) channels});
    }

    private String convolution(String x, int in, int out, int size, int stride) {
        String kernel = weight((float) Math.sqrt(2.0 / (in * size * size)), out, in, size, size);
        long pad = size / 2;
        ProtocolBuffer strides = integers("strides", stride, stride);
        return node("Conv", next(), List.of(integers("pads", pad, pad, pad, pad), strides), x, kernel);
    }

    private String product(String x, int rows, int columns) {
        return node("MatMul", next(), NONE, x, weight(0.6f / (float) Math.sqrt(rows), rows, columns));
    }

    private String next() {
        return "t" + count++;
    }

    private String node(String operator, String out, List<ProtocolBuffer> attributes, String... inputs) {
        ProtocolBuffer node = new ProtocolBuffer();
        for (String input : inputs) {
            node.text(1, input);
        }
        node.text(2, out).text(3, out).text(4, operator);
        attributes.forEach(attribute -> node.message(5, attribute));
        graph.message(1, node);
        return out;
    }

    private static ProtocolBuffer integers(String name, long... values) {
        ProtocolBuffer attribute = new ProtocolBuffer().text(1, name);
        for (long value : values) {
            attribute.number(8, value);
        }
        return attribute.number(20, INTEGERS);
    }

    private static ProtocolBuffer integer(String name, long value) {
        return new ProtocolBuffer().text(1, name).number(3, value).number(20, INTEGER);
    }

    private String weight(float scale, int... shape) {
        String name = "w" + count++;
        ProtocolBuffer tensor = new ProtocolBuffer();
        int length = 1;
        for (int side : shape) {
            tensor.number(1, side);
            length *= side;
        }
        ByteBuffer values = ByteBuffer.allocate(length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        float[] drawn = new float[DRAWN];
        for (int i = 0; i < DRAWN; i++) {
            drawn[i] = (float) random.nextGaussian() * scale;
        }
        for (int i = 0; i < length; i++) {
            values.putFloat(drawn[i % DRAWN]);
        }
        weights.message(5, tensor.number(2, FLOAT).text(8, name).bytes(9, values.array()));
        return name;
    }

    private byte[] bytes(Object[] in, Object[] out) {
        ProtocolBuffer whole = graph.text(2, "graph");
        whole.append(weights).message(11, value("x", in)).message(12, value("out", out));
        ProtocolBuffer operators = new ProtocolBuffer().text(1, "").number(2, OPERATORS_VERSION);
        return new ProtocolBuffer()
                .number(1, 8)
                .text(2, "cistern")
                .message(7, whole)
                .message(8, operators)
                .toBytes();
    }

    private static ProtocolBuffer value(String name, Object[] sides) {
        ProtocolBuffer shape = new ProtocolBuffer();
        for (Object side : sides) {
            ProtocolBuffer dimension = new ProtocolBuffer();
            shape.message(
                    1, side instanceof Long fixed ? dimension.number(1, fixed) : dimension.text(2, (String) side));
        }
        ProtocolBuffer tensor = new ProtocolBuffer().number(1, FLOAT).message(2, shape);
        return new ProtocolBuffer().text(1, name).message(2, new ProtocolBuffer().message(1, tensor));
    }
}
