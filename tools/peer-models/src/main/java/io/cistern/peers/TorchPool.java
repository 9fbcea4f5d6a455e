package io.cistern.peers;

import java.util.TreeSet;

/// The free blocks of small or of large requests.
///
/// @param isSmall whether requests of at most `1 MiB` are served
/// @param free blocks with memory
/// @param unmapped ranges of addresses without memory
record TorchPool(boolean isSmall, TreeSet<TorchBlock> free, TreeSet<TorchBlock> unmapped) {
    TorchPool(boolean isSmall) {
        this(isSmall, new TreeSet<>(TorchBlock::compareSize), new TreeSet<>(TorchBlock::compareAddress));
    }

    TreeSet<TorchBlock> blocks(boolean mapped) {
        return mapped ? free : unmapped;
    }
}
