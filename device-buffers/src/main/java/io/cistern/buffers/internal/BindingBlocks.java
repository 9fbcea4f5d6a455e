package io.cistern.buffers.internal;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntSupplier;

/// Remembers the live blocks that a binding of CUDA allocated itself, such as managed memory, so that the functions
/// which free Cistern's blocks pass these to the binding.
///
/// Only these blocks are passed. An unknown address may be the beginning of one of Cistern's segments, if its first
/// block is freed twice; the driver would then free the segment under all its blocks.
///
/// **Threads.** Any.
public final class BindingBlocks {
    private static final Set<Long> ADDRESSES = ConcurrentHashMap.newKeySet();

    private BindingBlocks() {}

    /// Remembers the block that a call of the binding allocated, if the call succeeded.
    ///
    /// @param result the call's result
    /// @return the result
    public static int noted(int result, long address) {
        if (result == 0) {
            ADDRESSES.add(address);
        }
        return result;
    }

    public static boolean has(long address) {
        return !ADDRESSES.isEmpty() && ADDRESSES.contains(address);
    }

    /// Lets the binding free a block. The block is forgotten first, because another thread may get its address at
    /// once.
    ///
    /// @return the binding's result
    public static int free(long address, IntSupplier free) {
        ADDRESSES.remove(address);
        int result = -1;
        try {
            result = free.getAsInt();
            return result;
        } finally {
            if (result != 0) {
                ADDRESSES.add(address);
            }
        }
    }
}
