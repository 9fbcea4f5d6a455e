package io.cistern.examples;

import io.cistern.DeviceMemory;
import io.cistern.async.sharing.PoolAccess;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.MemoryPoolProperties;

/// Writes from one device into a pool of another. It may do so once the pool grants it access, for all memory
/// that the pool has or will have, until the access is revoked.
///
/// Runs on two GPUs with access to each other's memory, or on simulated
/// ones with `-Dcistern.simulated.devices=2`.
public final class TwoDevices {
    private static final int HOME = 0;
    private static final int PEER = 1;
    private static final long BYTES = 1 << 20;

    private final CudaDriver driver = DeviceMemory.system().driver();

    private TwoDevices() {}

    /// Runs the example.
    public static void main(String[] arguments) {
        new TwoDevices().run();
    }

    private void run() {
        if (driver.devices().count() < 2) {
            System.err.println("this needs two devices; to simulate a second one: -Dcistern.simulated.devices=2");
            System.exit(1);
        }
        long homeStream = driver.streams().create(HOME);
        long pool = driver.pools().create(MemoryPoolProperties.onDevice(HOME));
        long address = driver.pools().allocateFrom(HOME, pool, BYTES, homeStream);
        driver.streams().synchronize(HOME, homeStream);

        PoolAccess access = new PoolAccess(driver, HOME, pool);
        System.out.printf("at first device %d has %s: %s%n", PEER, access.of(PEER), fill(address));
        access.grant(PEER);
        System.out.printf("then it has %s: %s%n", access.of(PEER), fill(address));
        access.revoke(PEER);
        System.out.printf("finally it has %s: %s%n", access.of(PEER), fill(address));

        driver.pools().free(HOME, address, homeStream);
        driver.pools().destroy(HOME, pool);
        driver.streams().destroy(HOME, homeStream);
    }

    /// Lets the peer write to the address, and says whether it could.
    private String fill(long address) {
        long stream = driver.streams().create(PEER);
        try {
            driver.copies().fillBytes(PEER, address, (byte) 1, BYTES, stream);
            driver.streams().synchronize(PEER, stream);
            return "it wrote";
        } catch (CudaException refused) {
            return "refused";
        } finally {
            driver.streams().destroy(PEER, stream);
        }
    }
}
