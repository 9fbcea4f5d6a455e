package io.cistern.buffers;

import io.cistern.DeviceMemory;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;

/// How copies between host memory and the buffers of one device memory are made. What is not set here is what the
/// settings say when the options are first needed.
///
/// ```java
/// CopyOptions.of(memory).reportPageableCopies(true);
/// ```
///
/// **Threads.** Any thread may call any method at any time; a copy goes by what is set when it begins.
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

    /// Sets whether to report copies that should run beside other work but can't, since their host memory is not
    /// pinned: once for each place in the program, as a warning of the logger `io.cistern.copies`. Without this
    /// call the setting `cistern.copies.report` decides.
    ///
    /// The report asks the driver about the memory of each such copy; off, it costs nothing.
    ///
    /// @return this
    public CopyOptions reportPageableCopies(boolean report) {
        reportPageableCopies = report;
        return this;
    }

    /// Sets whether the driver reads arrays of less than 8 MiB where they are, instead of from pinned memory that they
    /// are first copied to: as fast as C's copy of such memory, where the default is slower. Without this call the
    /// setting `cistern.copies.direct` decides.
    ///
    /// **Only for programs in which no GPU waits for Java code.** While the driver reads an array, no garbage
    /// collection begins, and a thread that asks for one waits: as long as the copy takes, longer where the driver
    /// waits for the stream. If the device then waits for a host function in Java, or for a word that a Java
    /// thread sets, the collection that waits for the copy stops that code, and the program stands still for good.
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
