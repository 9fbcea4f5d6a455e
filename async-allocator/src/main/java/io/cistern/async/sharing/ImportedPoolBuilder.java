package io.cistern.async.sharing;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.process.LocalSocket;
import io.cistern.errors.SharingException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.function.LongPredicate;

/// Describes a connection to a pool of another process.
public final class ImportedPoolBuilder {
    private final CudaDriver driver;
    private Transfer transfer = Transfer.SOCKET;
    private Duration patience = Duration.ofSeconds(10);
    private LongPredicate mayServe = user -> user == LocalSocket.ownUserId();

    ImportedPoolBuilder(CudaDriver driver) {
        this.driver = driver;
    }

    /// Sets how the pool's descriptor comes here; by default through the socket.
    public ImportedPoolBuilder transfer(Transfer way) {
        transfer = way;
        return this;
    }

    /// Sets how long to wait for each answer of the exporter; by default 10 s.
    public ImportedPoolBuilder patience(Duration most) {
        patience = most;
        return this;
    }

    /// For tests: who may serve, by user number.
    ImportedPoolBuilder mayServe(LongPredicate users) {
        mayServe = users;
        return this;
    }

    /// Connects to the pool that is served at a path.
    ///
    /// @throws SharingException if nobody serves there, or it is another user, or its device is not seen here
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public ImportedPool connect(Path path) {
        ExporterLink link = ExporterLink.connect(path, patience, mayServe);
        try {
            return new ImportedPool(driver, link, transfer);
        } catch (RuntimeException | Error failure) {
            link.close();
            throw failure;
        }
    }
}
