package io.cistern.caching;

import io.cistern.caching.internal.shard.AddressBatch;
import java.util.concurrent.atomic.AtomicIntegerArray;

/// Where each block of a model is: inside what is modelled, or in a thread's hands. Block 0 is none.
public final class BlockPlaces {
    private static final int OUTSIDE = 0;
    private static final int INSIDE = 1;

    private final AtomicIntegerArray places;

    /// All blocks are outside.
    public BlockPlaces(int blocks) {
        places = new AtomicIntegerArray(blocks + 1);
    }

    /// Lets a block in, if nobody else does.
    public boolean tryIn(int block) {
        return places.compareAndSet(block, OUTSIDE, INSIDE);
    }

    /// A block comes out.
    public void out(long block) {
        require(places.compareAndSet((int) block, INSIDE, OUTSIDE), "a block that was not there");
    }

    /// All blocks of a batch come out.
    public void out(AddressBatch taken) {
        for (int i = 0; i < taken.count; i++) {
            out(taken.addresses[i]);
        }
    }

    /// How many blocks are inside.
    public long inside() {
        long inside = 0;
        for (int block = 1; block < places.length(); block++) {
            inside += places.get(block);
        }
        return inside;
    }

    public static void require(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }
}
