package io.cistern.simulated;

/// The units of a memory pool, as observed on an H200 with driver 580: one range of addresses, under which lie pages.
final class PoolGrowth {
    /// The unit in which a pool takes and returns physical memory.
    static final long PAGE_BYTES = 32L << 20;
    /// Unit and alignment of blocks.
    static final long UNIT_BYTES = 512;

    private PoolGrowth() {}

    /// The most bytes a pool may reserve for a maximum that was asked for; 0 means no maximum.
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
