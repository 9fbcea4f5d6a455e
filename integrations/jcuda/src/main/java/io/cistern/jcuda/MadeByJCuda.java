package io.cistern.jcuda;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.ToIntFunction;
import jcuda.Pointer;

/// Remembers the live blocks that JCuda allocated through [CisternMalloc], so that the
/// same functions free them.
///
/// Only these blocks are passed to JCuda. An unknown address may be the beginning of one of Cistern's segments,
/// if its first block is freed twice; the driver would then free the segment under all its blocks.
///
/// **Threads.** Any.
final class MadeByJCuda {
    private static final Set<Long> ADDRESSES = ConcurrentHashMap.newKeySet();

    private MadeByJCuda() {}

    /// Remembers the block that a call of JCuda allocated, if the call succeeded.
    ///
    /// @param result the call's result
    /// @return the result
    static int noted(int result, Pointer pointer) {
        if (result == 0) {
            ADDRESSES.add(JCudaPointers.address(pointer));
        }
        return result;
    }

    static boolean has(Pointer pointer) {
        return !ADDRESSES.isEmpty() && ADDRESSES.contains(JCudaPointers.address(pointer));
    }

    /// Lets JCuda free a block. The block is forgotten first, because another thread may get
    /// its address at once.
    static <P extends Pointer> int free(P pointer, ToIntFunction<P> free) {
        long address = JCudaPointers.address(pointer);
        ADDRESSES.remove(address);
        int result = -1;
        try {
            result = free.applyAsInt(pointer);
            return result;
        } finally {
            if (result != 0) {
                ADDRESSES.add(address);
            }
        }
    }
}
