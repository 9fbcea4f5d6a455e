package io.cistern.cuda;

import java.util.List;
import java.util.Optional;

/// The advice for a range of managed memory, and its last prefetch (`CUmem_range_attribute`). A piece of advice
/// or a prefetch is reported only if it applies to every page of the range.
///
/// @param readMostly whether [MemoryAdvice#SET_READ_MOSTLY] holds
/// @param preferredLocation the place of [MemoryAdvice#SET_PREFERRED_LOCATION]; empty if there is none or
///     the pages' places differ
/// @param accessedBy the places of [MemoryAdvice#SET_ACCESSED_BY]: devices, and [the host][MemoryLocation#host()]
/// @param lastPrefetch the target of the last prefetch, whether or not it has begun; empty if a page was
///     never prefetched or the pages' targets differ
public record RangeAttributes(
        boolean readMostly,
        Optional<MemoryLocation> preferredLocation,
        List<MemoryLocation> accessedBy,
        Optional<MemoryLocation> lastPrefetch) {
    /// Copies the list.
    public RangeAttributes {
        accessedBy = List.copyOf(accessedBy);
    }
}
