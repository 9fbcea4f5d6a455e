package io.cistern.errors;

import io.cistern.cuda.CisternException;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.diagnostics.TriedStep;
import java.io.Serial;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Thrown if a device has too little memory for a request, or a limit refuses it. The failed call has
/// changed nothing, so the program can free memory and retry, unless the request [can never
/// fit][#canNeverFit]. Unlike [OutOfMemoryError], this exception is not about the Java heap.
public final class DeviceOutOfMemoryException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final long byteSize;
    private final int device;
    private final String detail;
    private final boolean byLimit;
    private final boolean aboveLimit;

    @SuppressWarnings("serial") // a copy by List.copyOf, which can be serialized
    private final List<TriedStep> steps;

    private @Nullable OutOfMemoryReport report;

    /// Creates an exception for an allocator to throw. The framework adds its report of the device and of
    /// the allocators.
    ///
    /// @param byteSize bytes requested by the caller
    /// @param device the device
    /// @param detail facts that the allocator knows, such as the memory that it holds and the steps that it
    ///     tried; may be empty
    public DeviceOutOfMemoryException(long byteSize, int device, String detail) {
        this(byteSize, device, detail, false, false, List.of());
    }

    /// @param detail null counts as empty, since a plug-in may pass on the message of another exception
    private DeviceOutOfMemoryException(
            long byteSize,
            int device,
            @Nullable String detail,
            boolean byLimit,
            boolean aboveLimit,
            List<TriedStep> steps) {
        super((byLimit ? "memory limit reached on device " : "out of memory on device ") + device + ": "
                + ByteSizes.exact(byteSize) + " requested" + (detail == null || detail.isEmpty() ? "" : "; " + detail));
        this.byteSize = byteSize;
        this.device = device;
        this.detail = detail == null ? "" : detail;
        this.byLimit = byLimit;
        this.aboveLimit = aboveLimit;
        this.steps = List.copyOf(steps);
    }

    /// Creates an exception for an allocator to throw, with the steps that the allocator tried.
    ///
    /// @param byteSize bytes requested by the caller
    /// @param device the device
    /// @param detail facts that the allocator knows; may be empty
    /// @param cause the first failure
    /// @param steps the steps in the order in which they were tried
    public DeviceOutOfMemoryException(
            long byteSize, int device, String detail, Throwable cause, List<TriedStep> steps) {
        this(byteSize, device, detail, false, false, steps);
        initCause(cause);
    }

    /// Creates an exception for a request that a [io.cistern.MemoryLimit] refuses.
    ///
    /// @param byteSize bytes requested by the caller
    /// @param device the device
    /// @param levels a human-readable text that names each limit and the bytes in use under it
    /// @param above whether the request is larger than one of these limits
    public static DeviceOutOfMemoryException ofLimit(long byteSize, int device, String levels, boolean above) {
        return new DeviceOutOfMemoryException(byteSize, device, levels, true, above, List.of());
    }

    /// Creates an exception for an allocator to throw if a request is larger than the allocator may ever
    /// hold. The framework then reclaims nothing.
    ///
    /// @param byteSize bytes requested by the caller
    /// @param device the device
    /// @param detail names the limit, such as an option of the allocator, and its value
    public static DeviceOutOfMemoryException aboveLimit(long byteSize, int device, String detail) {
        return new DeviceOutOfMemoryException(byteSize, device, detail, false, true, List.of());
    }

    /// Creates an exception for an allocator to throw if a request is larger than the memory of the device.
    /// The framework then reclaims nothing. Don't use this for managed memory and host memory, which may be
    /// larger than the device's memory.
    ///
    /// @param byteSize bytes requested by the caller
    /// @param device the device
    /// @param deviceBytes all bytes of the device: [io.cistern.spi.DeviceEnvironment#totalBytes]
    public static DeviceOutOfMemoryException aboveDevice(long byteSize, int device, long deviceBytes) {
        return aboveLimit(byteSize, device, "the device has " + ByteSizes.exact(deviceBytes) + " in all: request less");
    }

    /// Creates an exception that an allocator throws because its upstream or source threw this one, which
    /// becomes the cause. The new exception has the same [#isByLimit], [#canNeverFit] and [#steps].
    ///
    /// @param byteSize bytes requested by the caller
    /// @param detail facts that the allocator knows, and the [detail][#detail] of this exception
    public DeviceOutOfMemoryException passedOn(long byteSize, String detail) {
        return passedOn(byteSize, detail, steps());
    }

    /// Creates an exception that [passes on][#passedOn(long, String)] this one with other steps.
    ///
    /// @param byteSize bytes requested by the caller
    /// @param detail facts that the allocator knows, and the [detail][#detail] of this exception
    /// @param steps the steps in the order in which they were tried
    public DeviceOutOfMemoryException passedOn(long byteSize, String detail, List<TriedStep> steps) {
        DeviceOutOfMemoryException same =
                new DeviceOutOfMemoryException(byteSize, device, detail, byLimit, aboveLimit, steps);
        same.initCause(this);
        return same;
    }

    /// Adds the framework's report, and returns this exception.
    public DeviceOutOfMemoryException with(OutOfMemoryReport known) {
        report = known;
        return this;
    }

    /// Creates an exception for an allocator to throw because of the driver's own error.
    ///
    /// @param byteSize bytes requested by the caller
    /// @param device the device
    /// @param detail facts that the allocator knows; may be empty
    /// @param cause the driver's error
    public DeviceOutOfMemoryException(long byteSize, int device, String detail, Throwable cause) {
        this(byteSize, device, detail);
        initCause(cause);
    }

    /// Returns a message about the refused request. If the framework has added its report, and the refusal
    /// is neither [by a limit][#isByLimit] nor [final][#canNeverFit], the message also gives the free
    /// bytes of the device, the allocator that holds most, and the outcome of compaction.
    @Override
    public String getMessage() {
        String told = String.valueOf(super.getMessage());
        OutOfMemoryReport known = report;
        if (known == null || byLimit || aboveLimit) {
            return told;
        }
        String device = told.contains("the device has ") ? known.holderText() : "; " + known.deviceText();
        return told + device + known.compactionText();
    }

    /// Returns the bytes that the caller asked for.
    public long byteSize() {
        return byteSize;
    }

    /// Returns whether a [io.cistern.MemoryLimit] refused the request: one that the block would be charged to,
    /// or that of a pool's [upstream][io.cistern.MemoryPool.Builder#upstream]. This is false if the device had
    /// too little memory, or if an option of an allocator, such as `max_bytes`, caused the refusal.
    public boolean isByLimit() {
        return byLimit;
    }

    /// Returns whether the same request can't succeed, however much memory is freed: it is larger than a
    /// limit, an option of the allocator such as `max_bytes`, the device, or the device without its
    /// reserve. A retry is useless then: request less, or raise the limit or the option. Except for pools
    /// that lend, Cistern has not looked for memory, so other allocators keep their idle memory.
    ///
    /// False does not promise that a retry succeeds. This is about one allocation: a program that needs two
    /// blocks at once may never fit under a limit. Cistern does not know why a C library refuses, or why
    /// the program's own allocator does, unless that allocator [says][#aboveLimit] that the request can
    /// never fit.
    public boolean canNeverFit() {
        return aboveLimit;
    }

    /// Returns the reclaim steps, in the order in which they were tried.
    public List<TriedStep> steps() {
        OutOfMemoryReport known = report;
        return known != null ? known.steps() : steps;
    }

    /// Returns the framework's report of the device and the allocators when the framework gave up; empty if
    /// an allocator threw this exception outside a request of the framework.
    public Optional<OutOfMemoryReport> report() {
        return Optional.ofNullable(report);
    }

    /// Returns the device.
    public int device() {
        return device;
    }

    /// Returns the facts that the allocator knew, such as the memory that it holds and the steps that it tried;
    /// may be empty.
    public String detail() {
        return detail;
    }
}
