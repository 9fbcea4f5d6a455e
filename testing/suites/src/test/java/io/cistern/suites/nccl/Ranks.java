package io.cistern.suites.nccl;

import io.cistern.DeviceMemory;
import io.cistern.caching.CachingProvider;
import io.cistern.cuda.CudaDriver;
import io.cistern.nccl.Communicator;
import io.cistern.nccl.Nccl;
import io.cistern.nccl.NcclSourceProvider;
import io.cistern.nccl.SymmetricProvider;
import io.cistern.nccl.VmmSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ObjIntConsumer;

/// Holds the ranks of this process: a driver, device memory on it, and a communicator and a stream for each
/// rank. Ranks of other processes must make the same calls.
final class Ranks implements AutoCloseable {
    final CudaDriver driver;
    final DeviceMemory memory;
    final Nccl nccl;
    final List<Communicator> all;
    final List<Long> streams = new ArrayList<>();

    private Ranks(CudaDriver driver, Making making) {
        this.driver = driver;
        memory = memory(driver);
        nccl = Nccl.of(memory);
        all = making.make(nccl);
        all.forEach(rank -> streams.add(driver.streams().create(rank.device())));
    }

    /// Creates communicators.
    interface Making {
        List<Communicator> make(Nccl nccl);
    }

    /// Creates ranks that are all on devices of this process.
    static Ranks onDevices(CudaDriver driver, int... devices) {
        return new Ranks(driver, nccl -> nccl.initAll(devices));
    }

    static Ranks made(CudaDriver driver, Making making) {
        return new Ranks(driver, making);
    }

    static DeviceMemory memory(CudaDriver driver) {
        return DeviceMemory.builder(driver)
                .catalog(Catalog.of(
                        List.of(new CachingProvider(), new SymmetricProvider()),
                        List.of(new NcclSourceProvider(), new VmmSourceProvider())))
                .open();
    }

    int count() {
        return all.getFirst().rankCount();
    }

    /// Makes the calls of each rank of this process, as one group.
    void together(ObjIntConsumer<Communicator> calls) {
        nccl.group(() -> {
            for (int i = 0; i < all.size(); i++) {
                calls.accept(all.get(i), i);
            }
        });
    }

    void synchronize() {
        for (int i = 0; i < all.size(); i++) {
            driver.streams().synchronize(all.get(i).device(), streams.get(i));
        }
    }

    @Override
    public void close() {
        synchronize();
        all.forEach(Communicator::close);
        for (int i = 0; i < all.size(); i++) {
            memory.streamClosing(all.get(i).device(), streams.get(i));
        }
        memory.close();
        for (int i = 0; i < all.size(); i++) {
            driver.streams().destroy(all.get(i).device(), streams.get(i));
        }
        driver.close();
    }
}
