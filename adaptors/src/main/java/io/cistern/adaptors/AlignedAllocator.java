package io.cistern.adaptors;

import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.MemorySharing;
import io.cistern.spi.Segment;
import io.cistern.spi.StreamUses;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/// Aligns addresses to more than the 256 bytes that every allocator guarantees.
///
/// ```
///   upstream's block   |·····|###########|··|       pad = alignment − 256
///                      u     a           a + bytes  u ≤ a ≤ u + pad, since u is a multiple of 256
/// ```
///
/// Statistics, segments and histories come from the upstream: they show its blocks, which begin at u and
/// include the padding.
public final class AlignedAllocator extends AllocatorAdaptor {
    private static final long GIVEN = 256;

    private final long alignment;
    private final long padBytes;

    /// Exactly the live blocks, a → u.
    private final ConcurrentMap<Long, Long> upstreamAddresses = new ConcurrentHashMap<>();

    /// Wraps an allocator.
    ///
    /// @param alignment the alignment of all addresses in bytes: a power of two, 256 to 2^40
    /// @throws IllegalArgumentException if `alignment` is not a power of two, or out of range
    public AlignedAllocator(DeviceAllocator upstream, long alignment) {
        super(upstream);
        if (Long.bitCount(alignment) != 1 || alignment < GIVEN || alignment > 1L << 40) {
            throw new IllegalArgumentException("alignment must be a power of two, 256 to 2^40, not " + alignment);
        }
        this.alignment = alignment;
        this.padBytes = alignment - GIVEN;
    }

    /// Returns the alignment of all addresses, in bytes.
    public long alignment() {
        return alignment;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        long block = allocatePadded(byteSize, device, stream);
        long address = (block + alignment - 1) & -alignment;
        try {
            upstreamAddresses.put(address, block);
        } catch (Throwable full) {
            upstream().free(block, byteSize + padBytes, device, stream);
            throw full;
        }
        return address;
    }

    /// Reports failures with the bytes that the caller asked for, without the padding.
    private long allocatePadded(long byteSize, int device, long stream) {
        if (byteSize > Long.MAX_VALUE - padBytes) {
            throw DeviceOutOfMemoryException.aboveLimit(byteSize, device, padded());
        }
        try {
            return upstream().allocate(byteSize + padBytes, device, stream);
        } catch (DeviceOutOfMemoryException failure) {
            String detail = failure.detail().isEmpty() ? padded() : padded() + "; " + failure.detail();
            throw failure.passedOn(byteSize, detail);
        }
    }

    private String padded() {
        return "with " + padBytes + " more to align it to " + alignment;
    }

    /// {@inheritDoc}
    ///
    /// Extension methods that take a block's address pass the upstream its own address of that block.
    /// Lending to other pools and compaction are not offered.
    @Override
    public <T> Optional<T> extension(Class<T> type) {
        if (type == MemoryReclaim.class) {
            return upstream().extension(MemoryReclaim.class).map(reclaim -> type.cast(withoutLending(reclaim)));
        }
        if (type == StreamUses.class) {
            return upstream().extension(StreamUses.class).map(uses -> type.cast(translated(uses)));
        }
        if (type == MemorySharing.class) {
            return upstream().extension(MemorySharing.class).map(sharing -> type.cast(translated(sharing)));
        }
        return super.extension(type);
    }

    private static MemoryReclaim withoutLending(MemoryReclaim reclaim) {
        return new MemoryReclaim() {
            @Override
            public OptionalLong reclaim(ReclaimStep step, DeviceOutOfMemoryException refusal, long stream) {
                return reclaim.reclaim(step, refusal, stream);
            }

            @Override
            public void failed(DeviceOutOfMemoryException refusal) {
                reclaim.failed(refusal);
            }

            @Override
            public Optional<TrimResult> trim(int device, long keepBytes, TrimMode mode) {
                return reclaim.trim(device, keepBytes, mode);
            }
        };
    }

    private StreamUses translated(StreamUses uses) {
        return new StreamUses() {
            @Override
            public boolean recordUse(long address, int device, long stream) {
                Long block = upstreamAddresses.get(address);
                return block != null && uses.recordUse(block, device, stream);
            }
        };
    }

    private MemorySharing translated(MemorySharing sharing) {
        return new MemorySharing() {
            @Override
            public Availability grant(int device, int peer) {
                return sharing.grant(device, peer);
            }

            @Override
            public Optional<Segment> base(long address, int device) {
                return Optional.ofNullable(upstreamAddresses.get(address))
                        .flatMap(block -> sharing.base(block, device));
            }
        };
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        Long block = upstreamAddresses.remove(address);
        if (block == null) {
            throw new IllegalArgumentException(
                    "0x" + Long.toHexString(address) + " is not a live block of this allocator");
        }
        upstream().free(block, byteSize + padBytes, device, stream);
    }
}
