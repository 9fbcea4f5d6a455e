package io.cistern.spi;

import io.cistern.diagnostics.BlockHistory;
import java.util.Optional;

/// An optional ability of a [DeviceAllocator]: it remembers who allocated its blocks and, for a while, who freed
/// them, so that errors can tell.
public interface BlockRecords {
    /// The live block that an address lies in, else the block freed last that began there.
    Optional<BlockHistory> block(long address);
}
