package io.cistern.caching.internal.base;

import java.util.Locale;

/// Numbers that go up and down, with PyTorch's names and meaning.
public enum CacheStat {
    /// Blocks handed out.
    ALLOCATION(64),
    /// Bytes of these blocks, as rounded.
    ALLOCATED_BYTES(0),
    /// Bytes of these blocks, as requested.
    REQUESTED_BYTES(0),
    /// Blocks handed out, and blocks freed that another stream may still use.
    ACTIVE(64),
    /// Bytes of these blocks.
    ACTIVE_BYTES(0),
    /// Plain segments.
    SEGMENT(1),
    /// Bytes from the driver.
    RESERVED_BYTES(0),
    /// Free parts of plain segments; they can't go back to the driver.
    INACTIVE_SPLIT(64),
    /// Bytes of these parts.
    INACTIVE_SPLIT_BYTES(0);

    private static final long SMALL_CHUNK = 4L << 20;
    /// A pair of allocate and free of up to this size does not change the shared number.
    private static final long LARGE_CHUNK = 64L << 20;

    private final long chunk;

    CacheStat(long chunk) {
        this.chunk = chunk;
    }

    /// The unit of leases.
    public long chunk(boolean small) {
        if (chunk != 0) {
            return chunk;
        }
        return small ? SMALL_CHUNK : LARGE_CHUNK;
    }

    /// Whether this statistic counts bytes of blocks, which lie in reserved memory.
    public boolean isOfBlocks() {
        return this == ALLOCATED_BYTES || this == REQUESTED_BYTES || this == ACTIVE_BYTES;
    }

    public String key() {
        return name().toLowerCase(Locale.ROOT);
    }
}
