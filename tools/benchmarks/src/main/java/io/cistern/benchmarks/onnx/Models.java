package io.cistern.benchmarks.onnx;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Random;

/// Two encoders and a network of convolutions, with requests of many shapes.
final class Models {
    static final int KINDS = 24;
    private static final int[] WIDTHS = {512, 768};

    private Models() {}

    static byte[] bytes(int model) {
        return switch (model) {
            case 0 -> OnnxModel.encoder(8, WIDTHS[0], 1);
            case 1 -> OnnxModel.encoder(6, WIDTHS[1], 2);
            default -> OnnxModel.convolutions(8, 64, 3);
        };
    }

    /// Creates the input of a request; the same arguments give the same input.
    static OnnxTensor input(OrtEnvironment environment, int model, int kind) throws OrtException {
        Random random = new Random(kind);
        long batch = 1L << random.nextInt(5);
        long[] shape = model < WIDTHS.length
                ? new long[] {batch, 16 + random.nextInt(480), WIDTHS[model]}
                : new long[] {batch, 3, 8L * (8 + random.nextInt(24)), 8L * (8 + random.nextInt(24))};
        long length = 1;
        for (long side : shape) {
            length *= side;
        }
        FloatBuffer values = ByteBuffer.allocateDirect((int) length * Float.BYTES)
                .order(ByteOrder.nativeOrder())
                .asFloatBuffer();
        for (int i = 0; i < length; i++) {
            values.put(i, (((i * 2654435761L + kind) & 1023) - 512) / 512f);
        }
        return OnnxTensor.createTensor(environment, values, shape);
    }
}
