package io.cistern.benchmarks.onnx;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;

/// Writes a message in the format of protocol buffers, as far as a model needs it.
final class ProtocolBuffer {
    private static final int VARINT = 0;
    private static final int LENGTH_DELIMITED = 2;

    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

    ProtocolBuffer number(int field, long value) {
        variable(((long) field << 3) | VARINT);
        variable(value);
        return this;
    }

    ProtocolBuffer bytes(int field, byte[] value) {
        variable(((long) field << 3) | LENGTH_DELIMITED);
        variable(value.length);
        bytes.writeBytes(value);
        return this;
    }

    ProtocolBuffer text(int field, String value) {
        return bytes(field, value.getBytes(StandardCharsets.UTF_8));
    }

    ProtocolBuffer message(int field, ProtocolBuffer value) {
        return bytes(field, value.toBytes());
    }

    /// Appends the fields of another message.
    ProtocolBuffer append(ProtocolBuffer other) {
        bytes.writeBytes(other.toBytes());
        return this;
    }

    private void variable(long value) {
        long rest = value;
        while ((rest & ~0x7fL) != 0) {
            bytes.write((int) ((rest & 0x7f) | 0x80));
            rest >>>= 7;
        }
        bytes.write((int) rest);
    }

    byte[] toBytes() {
        return bytes.toByteArray();
    }
}
