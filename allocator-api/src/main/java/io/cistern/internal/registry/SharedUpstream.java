package io.cistern.internal.registry;

import io.cistern.diagnostics.CompactionResult;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/// An open allocator as the upstream of an adaptor. The framework itself asks it for its bytes, trims it,
/// announces ends of streams to it, and closes it. So these calls do nothing when they come through the
/// adaptor.
///
/// **Threads.** Any.
class SharedUpstream extends AllocatorAdaptor {
    SharedUpstream(DeviceAllocator open) {
        super(open);
    }

    @Override
    public OptionalLong reservedBytes(int device) {
        return OptionalLong.of(0);
    }

    @Override
    public long trim(int device, long keepBytes) {
        return 0;
    }

    /// The upstream is notified of streams itself, as an open allocator.
    @Override
    public void streamClosing(int device, long stream) {}

    @Override
    public void streamWaits(int device, long stream, long awaited) {}

    @Override
    public <T> Optional<T> extension(Class<T> type) {
        Optional<T> ability = super.extension(type);
        return type == MemoryReclaim.class
                ? ability.map(reclaim -> type.cast(new Reclaim((MemoryReclaim) reclaim)))
                : ability;
    }

    /// Passes on the reclaim for a refused request, but no trim, which is the upstream's own.
    record Reclaim(MemoryReclaim upstream) implements MemoryReclaim {
        @Override
        public Optional<CompactionResult> compact(int device, long byteSize) {
            return upstream.compact(device, byteSize);
        }

        /// Returns the upstream's plan, which is not this allocator's too: the framework adds up all plans.
        static Optional<CompactionResult> planOf(MemoryReclaim reclaim, int device) {
            return reclaim instanceof Reclaim shared ? planOf(shared.upstream, device) : reclaim.planCompaction(device);
        }

        @Override
        public OptionalLong reclaim(ReclaimStep step, DeviceOutOfMemoryException refusal, long stream) {
            return upstream.reclaim(step, refusal, stream);
        }

        @Override
        public void failed(DeviceOutOfMemoryException refusal) {
            upstream.failed(refusal);
        }

        @Override
        public Optional<TrimResult> trim(int device, long keepBytes, TrimMode mode) {
            return Optional.of(new TrimResult(0, OptionalLong.of(0), List.of()));
        }
    }
}
