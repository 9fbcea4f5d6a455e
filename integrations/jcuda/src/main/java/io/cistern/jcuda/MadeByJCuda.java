package io.cistern.jcuda;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.ToIntFunction;
import jcuda.Pointer;

/// The live blocks that JCuda allocated through [CisternMalloc], so that the same free serves them.
///
/// Only these go to JCuda. An address that nobody knows may be the beginning of a segment of Cistern's, after a
/// second free of the block there; the driver would free the segment under all its blocks.
///
/// **Threads.** Any.
final class MadeByJCuda {
    private static final Set<Long> ADDRESSES = ConcurrentHashMap.newKeySet();

    private MadeByJCuda() {}

    /// Notes the block that a call of JCuda allocated, if it did.
    ///
    /// @param result what the call returned
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

    /// Has JCuda free a block. It is forgotten before, since another thread may get its address at once.
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
