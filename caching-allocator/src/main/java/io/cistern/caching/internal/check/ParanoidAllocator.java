package io.cistern.caching.internal.check;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.MemoryMisuseException;
import io.cistern.internal.threads.HeldLock;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.Availability;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.MemorySleep;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.util.HashSet;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Supplier;

/// An allocator with the checks of level `paranoid`, around the caching allocator.
///
/// ```
/// address                address + byteSize       + 256
///    │ what the program has   │ guard bytes           │
/// ```
///
/// 1. Each block gets guard bytes after its end. They are filled when it is allocated and verified when it is
///    freed. A write before the start of a block shows in the guard of the block before it, or in freed memory.
/// 2. Freed memory is filled with a [pattern][MemoryPattern], once all work of the device has finished: other
///    streams may have used it, and the stream of the free may be gone. Before the memory is allocated again,
///    the pattern is verified.
/// 3. After each call all invariants are checked.
///
/// All calls that move memory take turns, since the invariants hold between calls. If the driver refuses a
/// check, it is skipped: a dead context must not keep a program from freeing.
public final class ParanoidAllocator extends AllocatorAdaptor implements MemoryReclaim {
    /// As wide as the alignment that every allocator promises.
    private static final long GUARD_BYTES = 256;

    private final VerifiableAllocator caching;
    private final CudaDriver driver;
    private final PoisonedRanges poisoned;
    private final MemoryPattern pattern;
    private final HeldLock lock = new HeldLock();

    /// Live blocks whose guard bytes the driver refused to fill. Guarded by the lock.
    private final Set<Long> unguarded = new HashSet<>();

    /// @param poisoned is notified of all memory that the caching allocator obtains and gives back
    public ParanoidAllocator(VerifiableAllocator caching, CudaDriver driver, PoisonedRanges poisoned) {
        super(caching);
        this.caching = caching;
        this.driver = driver;
        this.poisoned = poisoned;
        this.pattern = new MemoryPattern(driver.original()); // an observer of the program would report them
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        try (HeldLock _ = lock.held()) {
            return guarded(caching.allocate(byteSize + GUARD_BYTES, device, stream), byteSize, device, stream);
        }
    }

    @Override
    public Availability canLend() {
        return caching.canLend();
    }

    @Override
    public long tryAllocate(long byteSize, int device, long stream) {
        try (HeldLock _ = lock.held()) {
            long address = caching.tryAllocate(byteSize + GUARD_BYTES, device, stream);
            return address == 0 ? 0 : guarded(address, byteSize, device, stream);
        }
    }

    private long guarded(long address, long byteSize, int device, long stream) {
        boolean intact = false;
        try {
            verifyPoison(address, byteSize + GUARD_BYTES, device, stream);
            pattern.fill(device, address + byteSize, GUARD_BYTES, MemoryPattern.GUARD, stream);
            driver.streams().synchronize(device, stream);
            caching.checkInvariants();
            intact = true;
        } catch (CudaException refused) {
            unguarded.add(address);
            intact = true;
        } finally {
            if (!intact) {
                caching.free(address, byteSize + GUARD_BYTES, device, stream);
            }
        }
        return address;
    }

    private void verifyPoison(long address, long byteSize, int device, long stream) {
        for (PoisonedRanges.Range range : poisoned.take(address, byteSize)) {
            long wrong = pattern.firstOther(device, range.from(), range.byteSize(), MemoryPattern.FREED, stream);
            if (wrong >= 0) {
                throw new MemoryMisuseException(
                        MemoryMisuseException.Fault.WRITTEN_AFTER_FREE,
                        range.from() + wrong,
                        "memory was written after it was freed, first at 0x" + Long.toHexString(range.from() + wrong));
            }
        }
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        try (HeldLock _ = lock.held()) {
            long wrong = -1;
            try {
                wrong = spoiltGuard(address, byteSize, device);
            } finally { // no caller repeats a free, so it frees even if it throws
                caching.free(address, byteSize + GUARD_BYTES, device, stream);
            }
            caching.checkInvariants();
            if (wrong >= 0) {
                throw new MemoryMisuseException(
                        MemoryMisuseException.Fault.WRITTEN_BEHIND_END,
                        address + byteSize + wrong,
                        "written at byte " + (wrong + 1) + " past its end, or before the start of the next block");
            }
        }
    }

    /// Verifies the guard and fills the block, before it is freed.
    ///
    /// @return the offset of the first guard byte that was overwritten, or -1
    private long spoiltGuard(long address, long byteSize, int device) {
        boolean guarded = !unguarded.remove(address);
        boolean mayBeFilling = false;
        try {
            driver.devices().synchronize(device);
            long wrong =
                    guarded ? pattern.firstOther(device, address + byteSize, GUARD_BYTES, MemoryPattern.GUARD, 0) : -1;
            mayBeFilling = true;
            pattern.fill(device, address, byteSize + GUARD_BYTES, MemoryPattern.FREED, 0);
            driver.streams().synchronize(device, 0);
            mayBeFilling = false;
            poisoned.add(address, byteSize + GUARD_BYTES);
            return wrong;
        } catch (CudaException refused) {
            return -1;
        } finally {
            if (mayBeFilling) {
                caching.recordUse(address, device, 0);
            }
        }
    }

    @Override
    public long trim(int device, long keepBytes) {
        return inTurn(() -> caching.trim(device, keepBytes));
    }

    @Override
    public Optional<TrimResult> trim(int device, long keepBytes, TrimMode mode) {
        return inTurn(() -> caching.trim(device, keepBytes, mode));
    }

    @Override
    public OptionalLong reclaim(ReclaimStep step, DeviceOutOfMemoryException refusal, long stream) {
        return inTurn(() -> caching.reclaim(step, refusal, stream));
    }

    private <T> T inTurn(Supplier<T> call) {
        try (HeldLock _ = lock.held()) {
            T result = call.get();
            caching.checkInvariants();
            return result;
        }
    }

    @Override
    public void failed(DeviceOutOfMemoryException refusal) {
        caching.failed(refusal);
    }

    @Override
    public void streamClosing(int device, long stream) {
        try (HeldLock _ = lock.held()) {
            caching.streamClosing(device, stream);
            caching.checkInvariants();
        }
    }

    /// Offers no [MemorySleep]: freed memory is filled, so none of it may sleep.
    @Override
    public <T> Optional<T> extension(Class<T> type) {
        return type == MemorySleep.class ? Optional.empty() : super.extension(type);
    }

    @Override
    public void close() {
        try (HeldLock _ = lock.held()) {
            caching.close();
        }
    }
}
