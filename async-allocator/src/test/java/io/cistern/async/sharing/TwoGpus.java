package io.cistern.async.sharing;

import io.cistern.cuda.HandleType;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.testkit.StreamLatch;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;

/// An exporter and an importer, each on a simulated machine of its own, as in two processes.
final class TwoGpus implements AutoCloseable {
    static final long BYTES = 1 << 20;

    final SimulatedGpu owner = SimulatedGpu.builder().devices(2).build();
    final SimulatedGpu guest = SimulatedGpu.builder().devices(2).build();
    final long ownerStream = owner.streams().create(0);
    final long guestStream = guest.streams().create(0);
    final Path path;

    TwoGpus(Path folder) {
        path = folder.resolve("pool");
    }

    ExportedPool.Builder exporting() {
        return ExportedPool.builder(owner, 0)
                .handleType(HandleType.POSIX_FILE_DESCRIPTOR)
                .patience(Duration.ofMillis(200));
    }

    ExportedPool serve() {
        return exporting().serve(path);
    }

    ImportedPool connect() {
        return ImportedPool.connect(guest, path);
    }

    long allocate(ExportedPool pool) {
        return owner.pools().allocateFrom(0, pool.handle(), BYTES, ownerStream);
    }

    ExportedBuffer publish(ExportedPool pool, String name) {
        return pool.publish(name, allocate(pool), BYTES, ownerStream);
    }

    void fill(SimulatedGpu gpu, long address, int value, long stream) {
        gpu.copies().fillBytes(0, address, (byte) value, BYTES, stream);
    }

    /// The first byte and the last, if all are equal; else -1.
    static int content(SimulatedGpu gpu, long address, long stream) {
        MemorySegment bytes = gpu.memory().allocateHost(0, BYTES);
        try {
            gpu.copies().toHost(0, bytes, address, BYTES, stream);
            gpu.streams().synchronize(0, stream);
            byte first = bytes.get(ValueLayout.JAVA_BYTE, 0);
            return bytes.asSlice(1).mismatch(bytes.asSlice(0, BYTES - 1)) == -1 ? first : -1;
        } finally {
            gpu.memory().freeHost(0, bytes);
        }
    }

    static StreamLatch latch(SimulatedGpu gpu) {
        return new StreamLatch(gpu, 0);
    }

    @Override
    public void close() {
        owner.close();
        guest.close();
    }
}
