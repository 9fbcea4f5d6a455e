package io.cistern.simulated;

/// The units of a memory pool, as observed on an H200 with driver 580: one range of addresses, with pages under
/// it.
final class PoolGrowth {
    /// The unit in which a pool takes and returns physical memory.
    static final long PAGE_BYTES = 32L << 20;
    /// Unit and alignment of blocks.
    static final long UNIT_BYTES = 512;

    private PoolGrowth() {}

    /// Returns the most bytes that a pool may reserve if this maximum was asked for; 0 means no maximum.
    static long limit(long maxByteSize) {
        return maxByteSize == 0 ? Long.MAX_VALUE : LinearPlacement.roundUp(maxByteSize, PAGE_BYTES);
    }

    static long pageOf(long address) {
        return address & -PAGE_BYTES;
    }

    static long pageEnd(long address) {
        return (address + PAGE_BYTES - 1) & -PAGE_BYTES;
    }
}
