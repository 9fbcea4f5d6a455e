package io.cistern.simulated.internal.pool;

import io.cistern.simulated.internal.memory.LinearPlacement;

/// The units of a memory pool, as observed on an H200 with driver 580: one range of addresses, with pages under
/// it.
public final class PoolGrowth {
    /// The unit in which a pool takes and returns physical memory.
    public static final long PAGE_BYTES = 32L << 20;
    /// Unit and alignment of blocks.
    public static final long UNIT_BYTES = 512;

    private PoolGrowth() {}

    /// Returns the most bytes that a pool may reserve if this maximum was asked for; 0 means no maximum.
    static long limit(long maxByteSize) {
        boolean rounds = maxByteSize != 0 && maxByteSize <= Long.MAX_VALUE - PAGE_BYTES;
        return rounds ? LinearPlacement.roundUp(maxByteSize, PAGE_BYTES) : Long.MAX_VALUE;
    }

    static long pageOf(long address) {
        return address & -PAGE_BYTES;
    }

    public static long pageEnd(long address) {
        return (address + PAGE_BYTES - 1) & -PAGE_BYTES;
    }
}
