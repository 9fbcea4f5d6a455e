package io.cistern.buffers;

import io.cistern.DeviceMemory;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;

/// Options for copies between host memory and the buffers of one device memory. The settings give the
/// initial values.
///
/// ```java
/// CopyOptions.of(memory).reportPageableCopies(true);
/// ```
///
/// **Threads.** Any thread may call any method at any time; a copy uses the options that are set when it
/// begins.
public final class CopyOptions {
    private volatile boolean reportPageableCopies;
    private volatile boolean copyArraysDirectly;

    CopyOptions() {
        Settings settings = Settings.ofProcess();
        reportPageableCopies = settings.isTrue(Setting.COPIES_REPORT);
        copyArraysDirectly = settings.isTrue(Setting.COPIES_DIRECT);
    }

    /// Returns the options of a device memory.
    public static CopyOptions of(DeviceMemory memory) {
        return BufferSupport.of(memory).copyOptions;
    }

    /// Sets whether to report non-blocking copies that can't overlap other work because their host
    /// memory is not pinned. Each call site is reported once, as a warning of the logger
    /// `io.cistern.copies`. Without this call the setting `cistern.copies.report` decides.
    ///
    /// While reporting is on, each non-blocking copy of native memory asks the driver whether the memory is
    /// pinned. While reporting is off, copies cost nothing extra.
    ///
    /// @return this
    public CopyOptions reportPageableCopies(boolean report) {
        reportPageableCopies = report;
        return this;
    }

    /// Sets whether copies to a device read arrays of less than 8 MiB in place. By default, Cistern first
    /// copies arrays to pinned memory, which is slower for some sizes. Without this call the setting
    /// `cistern.copies.direct` decides.
    ///
    /// **Only for programs in which no GPU waits for Java code.** While the driver reads an array, no
    /// garbage collection can begin, and a thread that requests one waits. The wait is longer if the driver
    /// first waits for the stream. If the stream waits for Java code (a host function, or a thread that
    /// sets a word that a kernel polls), the pending collection also stops that code, and the program hangs
    /// forever.
    ///
    /// @return this
    public CopyOptions copyArraysDirectly(boolean direct) {
        copyArraysDirectly = direct;
        return this;
    }

    boolean reportsPageableCopies() {
        return reportPageableCopies;
    }

    boolean copiesArraysDirectly() {
        return copyArraysDirectly;
    }
}
