package io.cistern.async;

import java.util.Arrays;
import java.util.OptionalLong;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Supplier;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/// The streams that live blocks of one device are used on besides that of their free.
///
/// **Threads.** Any. Where no uses are recorded, a free pays a look at a number.
final class RecordedUses {
    /// The uses of one block; the arrays are never changed.
    ///
    /// @param streams streams that exist, each once, and [BatchFences#ENDED] for those that ended without a fence
    /// @param fences behind the last work of streams that have ended since; owned by whoever has the uses
    @SuppressWarnings("ArrayRecordComponent") // Nobody compares them.
    record Uses(long[] streams, long[] fences) {
        private Uses with(long stream) {
            return contains(stream) ? this : new Uses(appended(streams, stream), fences);
        }

        private boolean contains(long stream) {
            for (long each : streams) {
                if (each == stream) {
                    return true;
                }
            }
            return false;
        }

        private Uses ended(long stream, OptionalLong fence) {
            long[] others =
                    LongStream.of(streams).filter(each -> each != stream).toArray();
            return fence.isPresent()
                    ? new Uses(others, appended(fences, fence.getAsLong()))
                    : new Uses(others, fences).with(BatchFences.ENDED);
        }

        private static long[] appended(long[] numbers, long number) {
            long[] more = Arrays.copyOf(numbers, numbers.length + 1);
            more[numbers.length] = number;
            return more;
        }
    }

    private static final Uses NONE = new Uses(new long[0], new long[0]);

    private final ConcurrentMap<Long, Uses> ofBlocks = new ConcurrentHashMap<>();

    void add(long address, long stream) {
        ofBlocks.compute(address, (_, uses) -> (uses == null ? NONE : uses).with(stream));
    }

    /// Whether a live block has any.
    boolean any() {
        return !ofBlocks.isEmpty();
    }

    /// Takes the uses of a block that is being freed, or null.
    @Nullable
    Uses take(long address) {
        return ofBlocks.remove(address);
    }

    /// Replaces a stream that ends, wherever it is, by a fence behind its last work.
    ///
    /// @param fence makes one for each block, if the driver gives one
    void streamClosing(long stream, Supplier<OptionalLong> fence) {
        for (Long address : ofBlocks.keySet()) {
            ofBlocks.computeIfPresent(
                    address, (_, uses) -> uses.contains(stream) ? uses.ended(stream, fence.get()) : uses);
        }
    }
}
