package io.cistern.cli.trace;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.common.UsageException;
import io.cistern.cli.generated.GeneratedTrace;
import io.cistern.cli.generated.TraceSink;

/// Builds generated traces for replays.
public final class GeneratedTraces {
    private GeneratedTraces() {}

    /// Rejects a device that is too small for generated traces.
    ///
    /// @throws UsageException if the capacity is below [GeneratedTrace#MIN_CAPACITY_BYTES]
    static void requireCapacity(long capacityBytes) {
        if (capacityBytes < GeneratedTrace.MIN_CAPACITY_BYTES) {
            throw new UsageException(
                    "--capacity must be at least 64MiB for a generated trace, not " + ByteSize.format(capacityBytes));
        }
    }

    /// Builds a trace.
    ///
    /// @throws UsageException if the device is too small
    public static Trace build(GeneratedTrace generated, long seed, long capacityBytes) {
        requireCapacity(capacityBytes);
        Rows rows = new Rows(new TraceRows());
        generated.write(seed, capacityBytes, rows);
        return rows.builder().build(generated.label());
    }

    private record Rows(TraceRows builder) implements TraceSink {
        @Override
        public void allocate(long id, long byteSize, long stream) {
            builder.allocate(id, byteSize, 0, stream);
        }

        @Override
        public void free(long id, long stream) {
            builder.free(id, 0, stream);
        }

        @Override
        public void use(long id, long stream) {
            builder.use(id, 0, stream);
        }

        @Override
        public void await(long stream, long awaited) {
            builder.await(0, stream, awaited);
        }

        @Override
        public void end(long stream) {
            builder.end(0, stream);
        }
    }
}
