package io.cistern.internal.routing;

import io.cistern.cuda.settings.ByteSizes;
import io.cistern.errors.AllocatorContractException;
import org.jspecify.annotations.Nullable;

/// Checks the address that an allocator returned, and gives a block back that can't be used.
final class AddressCheck {
    /// Addresses below 2^49 that are multiples of 256, except 0.
    private static final long LEGAL_ADDRESSES = (1L << (OwnerTable.ADDRESS_BITS - 8)) - 1;

    private AddressCheck() {}

    /// Returns whether an address is a multiple of 256, not 0, and below the table's end, in one comparison:
    /// the rotation turns set low bits into high ones.
    static boolean isLegal(long address) {
        return Long.compareUnsigned(Long.rotateRight(address, 8) - 1, LEGAL_ADDRESSES) < 0;
    }

    /// Gives back a block that could not be recorded, most likely because the Java heap is full. [#illegal] has
    /// dealt with a block that must not be recorded.
    static void giveBackUnrecorded(Route route, long address, long byteSize, long stream, Throwable failure) {
        if (!(failure instanceof AllocatorContractException)) {
            giveBack(route, address, byteSize, stream, failure);
        }
    }

    private static void giveBack(Route route, long address, long byteSize, long stream, Throwable failure) {
        if (address != 0) {
            try {
                route.allocator.free(address, byteSize, route.device, stream);
            } catch (Throwable second) {
                failure.addSuppressed(second);
            }
        }
    }

    /// Returns the exception for an address that can't be a block's. The block is returned, unless that
    /// would free another block of the same allocator.
    ///
    /// @param holder the route of the live block that begins there, or null
    static AllocatorContractException illegal(
            Router router, Route route, @Nullable Route holder, long address, long byteSize, long stream) {
        boolean wellFormed = isLegal(address);
        Route other = holder == null || holder.allocator.equals(route.allocator) ? null : holder;
        String fault = wellFormed
                ? overlap(router, address, byteSize) + (other == null ? "" : builtOn(other))
                : "which is not a multiple of 256 between 256 and 2^" + OwnerTable.ADDRESS_BITS;
        var broken =
                new AllocatorContractException("allocator " + route.name + " returned 0x" + Long.toHexString(address)
                        + " for " + ByteSizes.count(byteSize) + " on device " + route.device + ", " + fault);
        if (!wellFormed || other != null) {
            giveBack(route, address, byteSize, stream, broken);
        }
        return broken;
    }

    private static String overlap(Router router, long address, long byteSize) {
        StringBuilder text = new StringBuilder();
        router.forEachLive((at, bytes, _) -> {
            if (text.isEmpty() && at < address + byteSize && address < at + bytes) {
                text.append(
                                at == address
                                        ? "where a live block already begins: 0x"
                                        : at < address
                                                ? "which lies in the live block that begins at 0x"
                                                : "which overlaps the live block that begins at 0x")
                        .append(Long.toHexString(at))
                        .append(" of ")
                        .append(ByteSizes.count(bytes));
            }
        });
        return text.isEmpty() ? "where a live block already begins" : text.toString();
    }

    private static String builtOn(Route holder) {
        return ", a block of the open allocator " + holder.name + ": an allocator can't hand out another's blocks as"
                + " its own;"
                + " open it around that one with OpenOptions.around";
    }
}
