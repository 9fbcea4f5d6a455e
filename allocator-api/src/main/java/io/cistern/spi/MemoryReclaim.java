package io.cistern.spi;

import io.cistern.diagnostics.CompactionResult;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;

/// The optional ability of a [DeviceAllocator] to give up idle memory in better ways than
/// [DeviceAllocator#trim]: only as much as a refused request needs, with a report, or for a request to
/// another allocator. An allocator overrides the methods that it supports.
///
/// **Failures.** If [#reclaim] throws an exception, the framework continues as if the call had given
/// nothing. If the request then fails, that exception is suppressed in the request's
/// [DeviceOutOfMemoryException], as is any exception that [#failed] throws. If [#reclaim] throws a
/// [io.cistern.cuda.CudaException] after which the context is dead, that exception reaches the caller
/// instead.
///
/// **Threads.** Any thread may call any method at any time.
public interface MemoryReclaim {
    /// Gives idle memory back to the driver, or makes it usable on the stream, as far as a refused request
    /// needs it. The framework calls this method after the steps [ReclaimStep#CALLBACKS] and
    /// [ReclaimStep#LENDING]. It may repeat the call a few times while each call gives something and the
    /// request is still refused. [Choice#reclaimsLater] says whether the framework will make this call.
    ///
    /// @param step [ReclaimStep#TRIM], which waits for nothing, or [ReclaimStep#SYNCHRONIZE], which waits for
    ///     work, but not for that of captured streams
    /// @param refusal says how many bytes were refused, on which device; its cause is this allocator's
    ///     exception
    /// @param stream the stream of the refused request
    /// @return the bytes given, 0 if there is nothing more. Empty if the allocator doesn't support this
    ///     call; the framework then trims the allocator, which gives back more than the request needs
    default OptionalLong reclaim(ReclaimStep step, DeviceOutOfMemoryException refusal, long stream) {
        return OptionalLong.empty();
    }

    /// Called when no step helped and the caller gets the exception, unless a limit of the program refused
    /// the request.
    ///
    /// @param refusal the last exception of this allocator
    default void failed(DeviceOutOfMemoryException refusal) {}

    /// Gives idle memory back to the driver until at most `keepBytes` are reserved, and reports which
    /// memory stayed and why.
    ///
    /// @param keepBytes bytes that may stay reserved, at least 0
    /// @return the result; empty, with nothing done, if the allocator has only [DeviceAllocator#trim]. The
    ///     framework then waits for the device if `mode` says so, calls that method, and reports no reasons
    default Optional<TrimResult> trim(int device, long keepBytes, TrimMode mode) {
        return Optional.empty();
    }

    /// Compacts live memory, and gives the freed memory back to the driver. No address changes. The
    /// allocator first waits for all work of the device.
    ///
    /// Only the framework calls this method, while the program [pauses][io.cistern.Listeners.WorkPause].
    /// Allocations and frees by other threads continue.
    ///
    /// @param byteSize bytes of a refused request, or 0 to free as much as possible. For a request, live
    ///     memory moves only if the request will then fit, and only as much as necessary
    /// @return the result; empty if the allocator can't move live memory
    /// @throws io.cistern.cuda.CudaException if the driver refuses; the contents of all blocks are intact then
    default Optional<CompactionResult> compact(int device, long byteSize) {
        return Optional.empty();
    }

    /// Estimates the result of [#compact]. Moves nothing and waits for nothing.
    ///
    /// @return the bytes that would be freed and copied, and the obstacle if there is one; empty if the
    ///     allocator can't move live memory, or if its memory comes from another open allocator, which the
    ///     framework asks directly
    default Optional<CompactionResult> planCompaction(int device) {
        return Optional.empty();
    }

    /// Returns whether [#tryAllocate] is implemented. A [io.cistern.MemoryPool] needs it to lend idle
    /// blocks to allocators that have run out of memory.
    default Availability canLend() {
        return Availability.no("it can't say whether it has idle memory for a request");
    }

    /// Allocates a block from idle memory that the stream may use now. It does the same as
    /// [DeviceAllocator#allocate], except that it obtains nothing from the driver and waits for nothing. The
    /// block is freed with [DeviceAllocator#free].
    ///
    /// @param byteSize the requested bytes, at least 1
    /// @param device the device's ordinal
    /// @param stream the stream on which the block is used first
    /// @return the address, or 0 if no idle block fits
    default long tryAllocate(long byteSize, int device, long stream) {
        return 0;
    }

    /// Specifies which steps an allocator may take by itself when there is no memory for a request. An
    /// allocator obtains this object from [AllocatorContext#extension]; if that method returns empty, the
    /// allocator takes all of its own steps.
    ///
    /// @param steps the steps that are allowed within the call that allocates
    /// @param reclaimsLater whether the framework takes [ReclaimStep#TRIM] and [ReclaimStep#SYNCHRONIZE]
    ///     later, by [MemoryReclaim#reclaim]. If false, the allocator itself may take these two steps
    ///     within the call, if `steps` contains them. False for an adaptor's upstream, because the adaptor
    ///     may act on a refusal before the framework does, and for an allocator that [serves
    ///     graphs][AllocatorProvider#openForGraphs], because the framework's steps do not call such an
    ///     allocator
    record Choice(Set<ReclaimStep> steps, boolean reclaimsLater) {
        /// Copies the set.
        public Choice {
            steps = Set.copyOf(steps);
        }

        /// Creates a choice with `reclaimsLater` false.
        public Choice(Set<ReclaimStep> steps) {
            this(steps, false);
        }
    }
}
