package io.cistern.internal.routing;

import io.cistern.errors.AllocatorContractException;

/// What an allocator returned: whether it may be a block, and the way back for one that can't be used.
final class AddressCheck {
    /// Addresses below 2^49 that are multiples of 256, without 0.
    private static final long LEGAL_ADDRESSES = (1L << (OwnerTable.ADDRESS_BITS - 8)) - 1;

    private AddressCheck() {}

    /// Whether an address is a multiple of 256, not 0, and below the table's end, in one comparison: rotated,
    /// low bits that are set become high ones.
    static boolean isLegal(long address) {
        return Long.compareUnsigned(Long.rotateRight(address, 8) - 1, LEGAL_ADDRESSES) < 0;
    }

    /// Gives back a block that could not be recorded, for want of heap most likely; one that must not be recorded
    /// was dealt with before.
    static void giveBackUnrecorded(Route route, long address, long byteSize, long stream, Throwable failure) {
        if (!(failure instanceof AllocatorContractException)) {
            giveBack(route, address, byteSize, stream, failure);
        }
    }

    private static void giveBack(Route route, long address, long byteSize, long stream, Throwable failure) {
        if (address != 0) {
            try {
                route.maker.free(address, byteSize, route.device, stream);
            } catch (Throwable second) {
                failure.addSuppressed(second);
            }
        }
    }

    /// What the caller gets for a block that can't be one; it goes back, unless that would free another's.
    static AllocatorContractException illegal(Route route, long address, long byteSize, long stream) {
        boolean wellFormed = isLegal(address);
        String fault = wellFormed
                ? "where a live block begins already"
                : "which is not a multiple of 256 between 256 and 2^" + OwnerTable.ADDRESS_BITS;
        var broken = new AllocatorContractException("allocator " + route.name + " returned 0x"
                + Long.toHexString(address) + " for " + byteSize + " bytes on device " + route.device + ", " + fault);
        if (!wellFormed) {
            giveBack(route, address, byteSize, stream, broken);
        }
        return broken;
    }
}
