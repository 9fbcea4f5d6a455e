package io.cistern.async.sharing;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.process.LocalSocket;
import io.cistern.errors.SharingException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.ThreadFactory;
import java.util.function.LongPredicate;

/// Describes an [ExportedPool].
public final class ExportedPoolBuilder {
    final CudaDriver driver;
    final int device;
    long pool;
    HandleType handleType = HandleType.POSIX_FILE_DESCRIPTOR;
    Duration patience = Duration.ofSeconds(10);
    ThreadFactory threads =
            Thread.ofPlatform().daemon().name("cistern-exported-pool-", 0).factory();
    LongPredicate mayConnect = user -> user == LocalSocket.ownUserId();

    ExportedPoolBuilder(CudaDriver driver, int device) {
        this.driver = driver;
        this.device = device;
    }

    /// Serves a pool of the program's instead of one of its own. It stays the program's: nothing of it is
    /// changed, and it is not destroyed.
    ///
    /// @param handle a pool on the device that was created with the handle type
    public ExportedPoolBuilder pool(long handle) {
        pool = handle;
        return this;
    }

    /// Sets how the pool comes into other processes; by default as a file descriptor. Fabric handles need an
    /// IMEX channel.
    ///
    /// @throws IllegalArgumentException for [HandleType#NONE]
    public ExportedPoolBuilder handleType(HandleType type) {
        if (type == HandleType.NONE) {
            throw new IllegalArgumentException("a pool that is shared needs a handle type");
        }
        handleType = type;
        return this;
    }

    /// Sets how long closing waits for importers that have something mapped; by default 10 s.
    public ExportedPoolBuilder patience(Duration most) {
        patience = most;
        return this;
    }

    /// Sets who makes the thread that serves; by default a daemon thread.
    public ExportedPoolBuilder threads(ThreadFactory factory) {
        threads = factory;
        return this;
    }

    /// For tests: who may connect, by user number.
    ExportedPoolBuilder mayConnect(LongPredicate users) {
        mayConnect = users;
        return this;
    }

    long createPool() {
        return driver.pools().create(new MemoryPoolProperties(MemoryLocation.device(device), handleType.bit(), 0));
    }

    /// Opens the pool and serves it.
    ///
    /// @param path where; in a folder that others can't write, such as `/run/user/UID`. A socket that a dead
    ///     process left there is replaced
    /// @throws SharingException if the pool can't be shared, or the path can't be served at
    /// @throws IllegalArgumentException if the path has over 107 bytes
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public ExportedPool serve(Path path) {
        return new ExportedPool(this, path);
    }
}
