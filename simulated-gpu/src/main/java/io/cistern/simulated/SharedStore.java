package io.cistern.simulated;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.process.Descriptor;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.SplittableRandom;

/// The memory of an exportable pool: an anonymous file that other processes map too, so that simulated GPUs
/// share its bytes.
///
/// ```
/// 0       8    16            4096
/// magic   id   (unused)      the pool's range of addresses, as far as it was backed yet
/// ```
/// The file has holes where nothing was written; the written bytes take host memory, unlike other simulated
/// memory. Guarded by the machine's lock; two processes that access it at once must order that themselves.
final class SharedStore implements AutoCloseable {
    private static final long MAGIC = 0x31_6c6f6f_70736943L;
    private static final long DATA = 4096;

    private final Descriptor descriptor;
    private final FileChannel channel;
    private final long id;

    private SharedStore(Descriptor descriptor, FileChannel channel, long id) {
        this.descriptor = descriptor;
        this.channel = channel;
        this.id = id;
    }

    /// Creates the memory of a new pool.
    static SharedStore create() {
        return run(() -> {
            Descriptor made = Descriptor.ofMemory("cistern-simulated-pool");
            FileChannel channel = open(made.number());
            MemorySegment header = channel.map(FileChannel.MapMode.READ_WRITE, 0, DATA, Arena.ofAuto());
            long id = new SplittableRandom().nextLong();
            header.set(ValueLayout.JAVA_LONG, 8, id);
            header.set(ValueLayout.JAVA_LONG, 0, MAGIC);
            return new SharedStore(made, channel, id);
        });
    }

    /// Opens the store of an [exported][#export] descriptor, which the caller still closes. Fails with
    /// INVALID_VALUE if the descriptor is anything else.
    static SharedStore of(int number) {
        return run(() -> {
            Path path = pathOf(number);
            DriverFailure.require(Files.isRegularFile(path) && Files.size(path) >= DATA);
            Descriptor own = new Descriptor(number).duplicate();
            FileChannel channel = open(number);
            MemorySegment header = channel.map(FileChannel.MapMode.READ_ONLY, 0, DATA, Arena.ofAuto());
            if (header.get(ValueLayout.JAVA_LONG, 0) != MAGIC) {
                own.close();
                channel.close();
                throw new DriverFailure(CudaResult.INVALID_VALUE);
            }
            return new SharedStore(own, channel, header.get(ValueLayout.JAVA_LONG, 8));
        });
    }

    private static FileChannel open(int number) throws IOException {
        return FileChannel.open(pathOf(number), StandardOpenOption.READ, StandardOpenOption.WRITE);
    }

    private static Path pathOf(int number) {
        return Path.of("/proc/self/fd/" + number);
    }

    /// Returns a number that no other store has.
    long id() {
        return id;
    }

    /// Returns a descriptor for another process.
    int export() {
        return run(() -> descriptor.duplicate().number());
    }

    /// Returns whether a range lies in the part that was backed yet.
    boolean contains(long offset, long byteSize) {
        return run(() -> offset >= 0 && byteSize > 0 && offset <= channel.size() - DATA - byteSize);
    }

    /// Returns the bytes of a range, mapped as long as the segment is reachable.
    MemorySegment map(long offset, long byteSize) {
        return run(() -> channel.map(FileChannel.MapMode.READ_WRITE, DATA + offset, byteSize, Arena.ofAuto()));
    }

    @Override
    public void close() {
        run(() -> {
            descriptor.close();
            channel.close();
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
