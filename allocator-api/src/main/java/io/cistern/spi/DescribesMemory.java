package io.cistern.spi;

import io.cistern.diagnostics.StreamMemory;
import java.util.List;

/// An optional ability of a [DeviceAllocator]: it tells, in constant time a stream, what it holds, for the report of
/// an out of memory.
public interface DescribesMemory {
    /// What it holds on a device now; weakly consistent. Calls no driver.
    List<StreamMemory> describe(int device);

    /// What of its settings keeps idle memory that lies in pieces from being put together for a larger request:
    /// sentences for people, with what to set instead.
    default List<String> whyInPieces() {
        return List.of();
    }
}
