package io.cistern.simulated;

import io.cistern.cuda.DriverCall;

/// One use of the driver that is wrong, whether or not hardware would notice.
///
/// @param kind what kind of mistake
/// @param call the driver call that showed it
/// @param device the device it was made on
/// @param address the memory it is about, or 0
/// @param description what happened, for people
public record Misuse(Kind kind, DriverCall call, int device, long address, String description) {
    /// Kinds of mistake.
    public enum Kind {
        /// Memory was used after it had been freed, in the order of the calls.
        USE_AFTER_FREE,
        /// Memory was freed on one stream while a use on another was not ordered before the free.
        FREE_BEFORE_USE_ENDS,
        /// Memory was used on a stream that does not wait for its allocation on another.
        USE_BEFORE_ALLOCATION,
        /// An address that nothing is mapped at, or a range that goes over the end of its allocation.
        UNMAPPED_ACCESS,
        /// A mapping that the device has no right to use that way.
        ACCESS_WITHOUT_RIGHTS,
        /// Memory was freed that is not (or no longer) allocated.
        DOUBLE_FREE,
        /// Memory was unmapped while work that uses it was not finished.
        UNMAP_WHILE_IN_USE,
        /// A stream, event or pool of another device's context, or of none.
        FOREIGN_HANDLE,
        /// A simulated kernel threw; a mistake in its Java function or in its arguments.
        BROKEN_KERNEL
    }
}
