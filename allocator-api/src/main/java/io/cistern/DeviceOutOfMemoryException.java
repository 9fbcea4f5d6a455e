package io.cistern;

import java.io.Serial;

/// A device has not got the memory that was asked for. The only error after which a retry makes sense, once
/// something has been freed. Unlike [OutOfMemoryError] it says nothing about the Java heap, and the program is as it
/// was before.
public final class DeviceOutOfMemoryException extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final long byteSize;
    private final int device;
    private final String detail;

    /// Says what could not be had; for allocators. The framework adds what it knows of the device and of its
    /// allocators.
    ///
    /// @param byteSize bytes asked for by the caller
    /// @param device the device
    /// @param detail what the allocator knows: what it holds, what it tried; may be empty
    public DeviceOutOfMemoryException(long byteSize, int device, String detail) {
        super("out of memory on device " + device + ": " + byteSize + " bytes asked for"
                + (detail.isEmpty() ? "" : "; " + detail));
        this.byteSize = byteSize;
        this.device = device;
        this.detail = detail;
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

    /// Bytes asked for by the caller.
    public long byteSize() {
        return byteSize;
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
