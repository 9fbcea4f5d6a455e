package io.cistern.simulated.internal.memory;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.process.Descriptor;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;

/// The memory of an exportable pool: an anonymous file that other processes map too, so that simulated GPUs
/// share its bytes.
///
/// ```
/// 0       8    16            4096
/// magic   id   (unused)      the pool's range of addresses, as far as it was backed yet
/// ```
/// The file has holes where nothing was written; the written bytes take host memory, unlike other simulated
/// memory. Guarded by the machine's lock; two processes that access it at once must synchronise.
///
/// @param id a number that no other store has
public record SharedStore(Descriptor descriptor, long id) implements AutoCloseable {
    private static final long MAGIC = 0x31_6c6f6f_70736943L;
    private static final long DATA = 4096;

    public static SharedStore create() {
        return run(() -> {
            Descriptor made = Descriptor.ofMemory("cistern-simulated-pool");
            MemorySegment header = map(made.number(), MapMode.READ_WRITE, 0, DATA);
            long id = new SplittableRandom().nextLong();
            header.set(ValueLayout.JAVA_LONG, 8, id);
            header.set(ValueLayout.JAVA_LONG, 0, MAGIC);
            return new SharedStore(made, id);
        });
    }

    /// Opens the store of an [exported][#export] descriptor, which the caller still closes. Fails with
    /// INVALID_VALUE if the descriptor is anything else.
    public static SharedStore of(int number) {
        return run(() -> {
            Path path = pathOf(number);
            DriverFailure.require(Files.isRegularFile(path) && Files.size(path) >= DATA);
            Descriptor own = new Descriptor(number).duplicate();
            MemorySegment header = map(number, MapMode.READ_ONLY, 0, DATA);
            if (header.get(ValueLayout.JAVA_LONG, 0) != MAGIC) {
                own.close();
                throw new DriverFailure(CudaResult.INVALID_VALUE);
            }
            return new SharedStore(own, header.get(ValueLayout.JAVA_LONG, 8));
        });
    }

    private static MemorySegment map(int number, MapMode mode, long offset, long byteSize) throws IOException {
        return NativeRange.map(pathOf(number), mode, offset, byteSize, Arena.ofAuto());
    }

    private static Path pathOf(int number) {
        return Path.of("/proc/self/fd/" + number);
    }

    public int export() {
        return run(() -> descriptor.duplicate().number());
    }

    /// Returns whether a range lies in the part that is backed so far.
    public boolean contains(long offset, long byteSize) {
        return run(() ->
                offset >= 0 && byteSize > 0 && offset <= Files.size(pathOf(descriptor.number())) - DATA - byteSize);
    }

    /// Returns the bytes of a range, mapped as long as the segment is reachable.
    public MemorySegment map(long offset, long byteSize) {
        return run(() -> map(descriptor.number(), MapMode.READ_WRITE, DATA + offset, byteSize));
    }

    @Override
    public void close() {
        run(() -> {
            descriptor.close();
            return true;
        });
    }

    private interface FileWork<T> {
        T run() throws IOException;
    }

    private static <T> T run(FileWork<T> work) {
        try {
            return work.run();
        } catch (IOException refused) {
            throw new DriverFailure(CudaResult.OPERATING_SYSTEM);
        } catch (UnsupportedOperationException elsewhere) {
            throw new DriverFailure(CudaResult.NOT_SUPPORTED);
        }
    }
}
