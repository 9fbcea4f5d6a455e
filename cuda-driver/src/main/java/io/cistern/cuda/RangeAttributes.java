package io.cistern.cuda;

import java.util.List;
import java.util.Optional;

/// The advice of a program about a range of managed memory (`CUmem_range_attribute`). A statement counts only if it
/// was made about every page of the range.
///
/// @param readMostly whether [MemoryAdvice#SET_READ_MOSTLY] holds
/// @param preferredLocation the place of [MemoryAdvice#SET_PREFERRED_LOCATION]; empty if there is none, or not
///     one for all pages
/// @param accessedBy the places of [MemoryAdvice#SET_ACCESSED_BY]: devices, and [the host][MemoryLocation#host()]
/// @param lastPrefetch the target of the last prefetch, whether or not that has begun; empty if a page had none,
///     or they had several
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
