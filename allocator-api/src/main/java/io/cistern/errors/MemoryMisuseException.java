package io.cistern.errors;

import io.cistern.cuda.CisternException;
import io.cistern.diagnostics.BlockHistory;
import java.io.Serial;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Thrown if a checking allocator finds that the program misused device memory. For an unknown address, an
/// [UnknownAddressException] is thrown instead.
public final class MemoryMisuseException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    /// The kinds of misuse.
    public enum Fault {
        /// A block was freed with a size other than the allocated one; the block is still alive.
        WRONG_SIZE,
        /// A block was freed on a device other than its own; the block is still alive.
        WRONG_DEVICE,
        /// A stream was destroyed without having been [announced][io.cistern.DeviceMemory#streamClosing];
        /// its handle may name another stream now. If a free noticed this, the block was freed; any other
        /// call had no effect.
        STREAM_END_NOT_ANNOUNCED,
        /// The bytes after a block were overwritten while it was alive. A free noticed this, and the block
        /// was freed.
        WRITTEN_BEHIND_END,
        /// Memory was written after it was freed. An allocation that was about to return this memory
        /// noticed this; nothing was allocated.
        WRITTEN_AFTER_FREE
    }

    private final Fault fault;
    private final long address;
    private final @Nullable BlockHistory block;

    /// Creates an exception for an allocator to throw.
    ///
    /// @param address the block's address, or that of the first byte written
    /// @param what a human-readable message
    public MemoryMisuseException(Fault fault, long address, String what) {
        super(what);
        this.fault = fault;
        this.address = address;
        this.block = null;
    }

    /// Creates an exception about a block, for an allocator to throw.
    ///
    /// @param address the block's address, or that of the first byte written
    /// @param what a human-readable message, to which a description of the block is added
    /// @param block the block's history
    public MemoryMisuseException(Fault fault, long address, String what, BlockHistory block) {
        super(what + "; " + block.describe());
        this.fault = fault;
        this.address = address;
        this.block = block;
    }

    /// Returns the kind of misuse.
    public Fault fault() {
        return fault;
    }

    /// Returns the block's address, or that of the first byte written; 0 if an allocation noticed a stream
    /// whose end was not announced.
    public long address() {
        return address;
    }

    /// Returns the history of the block: which code allocated and freed it, as far as that is known. Empty
    /// if the exception is not about a known block.
    public Optional<BlockHistory> block() {
        return Optional.ofNullable(block);
    }
}
