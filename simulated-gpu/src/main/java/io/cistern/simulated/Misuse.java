package io.cistern.simulated;

import io.cistern.cuda.DriverCall;

/// A wrong use of the driver, whether or not hardware would notice it.
///
/// @param kind the kind of mistake
/// @param call the driver call that revealed it
/// @param device the device of that call
/// @param address the memory concerned, or 0
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
        /// The use of an address where nothing is mapped, or of a range beyond the end of its allocation.
        UNMAPPED_ACCESS,
        /// A device used a mapping without having the access rights for that use.
        ACCESS_WITHOUT_RIGHTS,
        /// The free of memory that is not, or no longer, allocated.
        DOUBLE_FREE,
        /// Memory was unmapped while work that uses it was not finished.
        UNMAP_WHILE_IN_USE,
        /// The use of a handle of another device's context, of another kind, or of a destroyed object.
        FOREIGN_HANDLE,
        /// A simulated kernel threw an exception, because of a mistake in its Java function or its arguments.
        BROKEN_KERNEL
    }
}
