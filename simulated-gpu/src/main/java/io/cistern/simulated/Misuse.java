package io.cistern.simulated;

import io.cistern.cuda.DriverCall;

/// A misuse of the driver that hardware might not detect.
///
/// @param kind the kind of mistake
/// @param call the driver call that revealed it
/// @param device the device of that call
/// @param address the address of the memory concerned, or 0
/// @param description a human-readable description of what happened
public record Misuse(Kind kind, DriverCall call, int device, long address, String description) {
    /// Kinds of mistake.
    public enum Kind {
        /// Memory was used by a call that came after the call that freed it.
        USE_AFTER_FREE,
        /// Memory was freed on one stream, but its use on another stream was not ordered before the free.
        FREE_BEFORE_USE_ENDS,
        /// Memory was used on a stream that does not wait for its allocation on another.
        USE_BEFORE_ALLOCATION,
        /// An address was used where nothing is mapped, or a range was used beyond the end of its allocation.
        UNMAPPED_ACCESS,
        /// A device used a mapping without the access rights for that use.
        ACCESS_WITHOUT_RIGHTS,
        /// Memory that is not, or no longer, allocated was freed.
        DOUBLE_FREE,
        /// Memory was unmapped before work that uses it had finished.
        UNMAP_WHILE_IN_USE,
        /// A handle was used that belongs to another device's context, to an object of another kind, or to a
        /// destroyed object.
        FOREIGN_HANDLE,
        /// A simulated kernel threw an exception, because of a mistake in its Java function or its arguments.
        BROKEN_KERNEL
    }
}
