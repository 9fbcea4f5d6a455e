package io.cistern.onnxruntime;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/// Writes a model in ONNX's format, which is Protocol Buffers: three layers `x · w + b`, the
/// first two cut off below 0, for any number of rows.
final class OnnxModel {
    static final int WIDTH = 64;

    private static final int VARINT = 0;
    private static final int BYTES = 2;
    private static final int FLOAT = 1;
    private static final int IR_VERSION = 8;
    private static final int OPERATORS_VERSION = 13;

    private OnnxModel() {}

    /// A message of Protocol Buffers.
    private static final class Message {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        Message number(int field, long value) {
            varint(field << 3 | VARINT);
            varint(value);
            return this;
        }

        Message text(int field, String text) {
            return bytes(field, text.getBytes(StandardCharsets.UTF_8));
        }

        Message message(int field, Message nested) {
            return bytes(field, nested.bytes.toByteArray());
        }

        Message bytes(int field, byte[] content) {
            varint(field << 3 | BYTES);
            varint(content.length);
            bytes.writeBytes(content);
            return this;
        }

        private void varint(long value) {
            long rest = value;
            for (; rest > 0x7F; rest >>>= 7) {
                bytes.write((int) (rest & 0x7F | 0x80));
            }
            bytes.write((int) rest);
        }
    }

    /// Returns the model's bytes. All weights are small integers, so results are exact.
    static byte[] bytes() {
        Message graph = new Message()
                .message(1, node("MatMul", "x", "w", "a"))
                .message(1, node("Add", "a", "b", "c"))
                .message(1, node("Relu", "c", "d"))
                .message(1, node("MatMul", "d", "w", "e"))
                .message(1, node("Add", "e", "b", "f"))
                .message(1, node("Relu", "f", "g"))
                .message(1, node("MatMul", "g", "w", "h"))
                .message(1, node("Add", "h", "b", "y"))
                .text(2, "layers")
                .message(5, weights("w", WIDTH, WIDTH))
                .message(5, weights("b", WIDTH))
                .message(11, value("x"))
                .message(12, value("y"));
        return new Message()
                .number(1, IR_VERSION)
                .message(7, graph)
                .message(8, new Message().text(1, "").number(2, OPERATORS_VERSION))
                .bytes
                .toByteArray();
    }

    /// @param names the inputs, then the output
    private static Message node(String operator, String... names) {
        Message node = new Message();
        for (int i = 0; i < names.length - 1; i++) {
            node.text(1, names[i]);
        }
        return node.text(2, names[names.length - 1]).text(4, operator);
    }

    private static Message weights(String name, int... shape) {
        Message tensor = new Message();
        int count = 1;
        for (int length : shape) {
            tensor.number(1, length);
            count *= length;
        }
        ByteBuffer raw = ByteBuffer.allocate(count * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < count; i++) {
            raw.putFloat(weight(i));
        }
        return tensor.number(2, FLOAT).text(8, name).bytes(9, raw.array());
    }

    private static Message value(String name) {
        Message shape =
                new Message().message(1, new Message().text(2, "rows")).message(1, new Message().number(1, WIDTH));
        Message type = new Message().number(1, FLOAT).message(2, shape);
        return new Message().text(1, name).message(2, new Message().message(1, type));
    }

    private static float weight(int index) {
        return index % 3 - 1;
    }

    /// Returns what the model makes of rows.
    static float[][] expected(float[][] rows) {
        return layer(cutOff(layer(cutOff(layer(rows)))));
    }

    private static float[][] cutOff(float[][] rows) {
        for (float[] row : rows) {
            for (int i = 0; i < WIDTH; i++) {
                row[i] = Math.max(row[i], 0);
            }
        }
        return rows;
    }

    private static float[][] layer(float[][] rows) {
        float[][] out = new float[rows.length][WIDTH];
        for (int r = 0; r < rows.length; r++) {
            for (int column = 0; column < WIDTH; column++) {
                float sum = weight(column);
                for (int i = 0; i < WIDTH; i++) {
                    sum += rows[r][i] * weight(i * WIDTH + column);
                }
                out[r][column] = sum;
            }
        }
        return out;
    }
}
