package io.cistern.errors;

import io.cistern.cuda.CisternException;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.diagnostics.TriedStep;
import java.io.Serial;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// A device has not got the memory that was asked for. The only error after which a retry makes sense, once
/// something has been freed. Unlike [OutOfMemoryError] it says nothing about the Java heap, and the program is as it
/// was before.
public final class DeviceOutOfMemoryException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final long byteSize;
    private final int device;
    private final String detail;
    private final boolean byLimit;
    private final transient List<TriedStep> steps;
    private transient @Nullable OutOfMemoryReport report;

    /// Says what could not be had; for allocators. The framework adds what it knows of the device and of its
    /// allocators.
    ///
    /// @param byteSize bytes asked for by the caller
    /// @param device the device
    /// @param detail what the allocator knows: what it holds, what it tried; may be empty
    public DeviceOutOfMemoryException(long byteSize, int device, String detail) {
        this(byteSize, device, detail, false, List.of());
    }

    private DeviceOutOfMemoryException(
            long byteSize, int device, String detail, boolean byLimit, List<TriedStep> steps) {
        super("out of memory on device " + device + ": " + byteSize + " bytes asked for"
                + (detail.isEmpty() ? "" : "; " + detail));
        this.byteSize = byteSize;
        this.device = device;
        this.detail = detail;
        this.byLimit = byLimit;
        this.steps = List.copyOf(steps);
    }

    /// As the other constructors, with what the allocator tried.
    ///
    /// @param byteSize bytes asked for by the caller
    /// @param device the device
    /// @param detail what the allocator knows; may be empty
    /// @param cause the error that began it
    /// @param steps in their order
    public DeviceOutOfMemoryException(
            long byteSize, int device, String detail, Throwable cause, List<TriedStep> steps) {
        this(byteSize, device, detail, false, steps);
        initCause(cause);
    }

    /// The refusal of a limit.
    ///
    /// @param byteSize bytes asked for by the caller
    /// @param device the device
    /// @param levels the limits, and what is charged to them
    public static DeviceOutOfMemoryException ofLimit(long byteSize, int device, String levels) {
        return new DeviceOutOfMemoryException(byteSize, device, levels, true, List.of());
    }

    /// Adds what the framework found out before it gave up.
    ///
    /// @return this
    public DeviceOutOfMemoryException with(OutOfMemoryReport known) {
        report = known;
        return this;
    }

    /// As the other constructor, with the driver's own error.
    ///
    /// @param byteSize bytes asked for by the caller
    /// @param device the device
    /// @param detail what the allocator knows; may be empty
    /// @param cause the driver's error
    public DeviceOutOfMemoryException(long byteSize, int device, String detail, Throwable cause) {
        this(byteSize, device, detail);
        initCause(cause);
    }

    /// What was refused, with what the device has where the allocator did not say that.
    @Override
    public String getMessage() {
        String told = String.valueOf(super.getMessage());
        OutOfMemoryReport known = report;
        return known == null || byLimit || told.contains("the device has ") ? told : told + "; " + known.deviceText();
    }

    /// Bytes asked for by the caller.
    public long byteSize() {
        return byteSize;
    }

    /// Whether a limit refused it, and not the device.
    public boolean isByLimit() {
        return byLimit;
    }

    /// What was tried, in that order.
    public List<TriedStep> steps() {
        OutOfMemoryReport known = report;
        return known != null ? known.steps() : steps == null ? List.of() : steps;
    }

    /// All that was known when the framework gave up; empty for an error that has not come so far.
    public Optional<OutOfMemoryReport> report() {
        return Optional.ofNullable(report);
    }

    /// The device.
    public int device() {
        return device;
    }

    /// What the allocator knew: what it holds, what it tried; may be empty.
    public String detail() {
        return detail;
    }
}
