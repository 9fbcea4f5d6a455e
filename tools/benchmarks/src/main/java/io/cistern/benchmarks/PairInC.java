package io.cistern.benchmarks;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/// Calls the loops of `peers/async_pair.c`.
final class PairInC extends LoopsInC {
    private final MethodHandle pairs = bind("async_pair_nanos", LONG, LONG, LONG, LONG);
    private final MethodHandle threadedPairs =
            bind("async_pair_threads_nanos", LONG, LONG, ValueLayout.ADDRESS, INT, LONG, LONG);

    PairInC(Path library, String driver) {
        super(library, "async_pair_open", driver);
    }

    /// Returns the nanoseconds of so many pairs on the calling thread, whose context must be current.
    long nanos(long pool, long stream, long byteSize, long count) {
        try {
            return checked((long) pairs.invokeExact(pool, stream, byteSize, count));
        } catch (Throwable e) {
            throw failed(e);
        }
    }

    /// Returns the same for native threads, one for each stream, from the first begin to the last end.
    long nanos(long context, long pool, long[] streams, long byteSize, long countEach) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handles = arena.allocateFrom(LONG, streams);
            return checked(
                    (long) threadedPairs.invokeExact(context, pool, handles, streams.length, byteSize, countEach));
        } catch (Throwable e) {
            throw failed(e);
        }
    }
}
