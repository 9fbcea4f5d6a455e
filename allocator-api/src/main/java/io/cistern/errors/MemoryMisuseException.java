package io.cistern.errors;

import io.cistern.cuda.CisternException;
import io.cistern.diagnostics.BlockHistory;
import java.io.Serial;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// A program misused device memory, and an allocator that checks found it. What an unknown address is, tells
/// [UnknownAddressException].
public final class MemoryMisuseException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    /// What was wrong.
    public enum Fault {
        /// A block was freed with another size than it was allocated with. It is still alive.
        WRONG_SIZE,
        /// A block was freed on another device than it lives on. It is still alive.
        WRONG_DEVICE,
        /// A stream was destroyed without having been [announced][io.cistern.DeviceMemory#streamClosing]; its handle
        /// may
        /// name another stream now. A block that was to be freed is freed; one that was to be allocated is
        /// not.
        STREAM_END_NOT_ANNOUNCED,
        /// The bytes behind a block were written before it was freed. It is freed.
        WRITTEN_BEHIND_END,
        /// Memory was written after it was freed. What was to be allocated there is not.
        WRITTEN_AFTER_FREE
    }

    private final Fault fault;
    private final long address;
    private final @Nullable BlockHistory block;

    /// Says what was wrong, for allocators.
    ///
    /// @param address where: the block's, or that of the first byte written
    /// @param what what is known beyond the fault
    public MemoryMisuseException(Fault fault, long address, String what) {
        super(what);
        this.fault = fault;
        this.address = address;
        this.block = null;
    }

    /// Says what was wrong with a block, for allocators.
    ///
    /// @param address where: the block's, or that of the first byte written
    /// @param what what is known beyond the fault and the block
    /// @param block the block
    public MemoryMisuseException(Fault fault, long address, String what, BlockHistory block) {
        super(what + "; " + block.describe());
        this.fault = fault;
        this.address = address;
        this.block = block;
    }

    /// What was wrong.
    public Fault fault() {
        return fault;
    }

    /// Where: the block's address, or that of the first byte written; 0 if it is about a stream.
    public long address() {
        return address;
    }

    /// The block, with the places that allocated and freed it, as far as they are known.
    public Optional<BlockHistory> block() {
        return Optional.ofNullable(block);
    }
}
