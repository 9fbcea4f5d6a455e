package io.cistern.benchmarks;

import io.cistern.async.sharing.PoolAccess;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PoolAttribute;
import java.util.Arrays;
import java.util.Locale;

/// What access between devices costs, for each ordered pair of devices that see each other: to grant and to
/// revoke a pool that has reserved so much, to allocate from a pool that grows with peers and without, and how
/// fast each copies from the other's pool. The bytes are compared; a difference ends it with code 1.
///
/// Arguments: `cuda:0` or `simulated`, rounds (5). Prints a line of JSON for each figure; one line if there is
/// one device.
public final class PeerAccessCost {
    private static final long MIB = 1L << 20;
    private static final long[] RESERVED = {0, 32 * MIB, 1024 * MIB, 8192 * MIB};
    private static final long GROWTH_BYTES = 1024 * MIB;
    private static final long COPY_BYTES = 256 * MIB;
    private static final int COPIES = 20;

    private final CudaDriver driver;
    private final String device;
    private final int rounds;

    private PeerAccessCost(String device, int rounds) {
        this.device = device;
        this.rounds = rounds;
        this.driver = DriverNamed.open(device);
    }

    /// Measures and prints.
    public static void main(String[] arguments) {
        int rounds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 5;
        new PeerAccessCost(arguments[0], rounds).measure();
    }

    private void measure() {
        int devices = driver.devices().count();
        print(0, 0, "devices", 0, "count", devices);
        for (int home = 0; home < devices; home++) {
            for (int peer = 0; peer < devices; peer++) {
                if (home != peer) {
                    measure(home, peer);
                }
            }
        }
    }

    private void measure(int home, int peer) {
        boolean reachable = driver.peers().canAccess(peer, home);
        print(home, peer, "reachable", 0, "boolean", reachable ? 1 : 0);
        if (reachable) {
            for (long reserved : RESERVED) {
                grantAndRevoke(home, peer, reserved);
            }
            growth(home, peer, false);
            growth(home, peer, true);
            copies(home, peer);
        }
    }

    private void grantAndRevoke(int home, int peer, long reserved) {
        try (OnePool pool = new OnePool(home)) {
            if (reserved > 0) {
                pool.allocate(reserved);
            }
            long[] granted = new long[rounds];
            long[] revoked = new long[rounds];
            pool.access.grant(peer); // The first one compiles.
            pool.access.revoke(peer);
            for (int i = 0; i < rounds; i++) {
                long begin = System.nanoTime();
                pool.access.grant(peer);
                long between = System.nanoTime();
                pool.access.revoke(peer);
                granted[i] = between - begin;
                revoked[i] = System.nanoTime() - between;
            }
            print(home, peer, "grant", reserved, "micros", median(granted));
            print(home, peer, "revoke", reserved, "micros", median(revoked));
        }
    }

    private void growth(int home, int peer, boolean granted) {
        long[] nanos = new long[rounds];
        for (int i = 0; i < rounds; i++) {
            try (OnePool pool = new OnePool(home)) {
                if (granted) {
                    pool.access.grant(peer);
                }
                long begin = System.nanoTime();
                pool.allocate(GROWTH_BYTES);
                nanos[i] = System.nanoTime() - begin;
            }
        }
        print(home, peer, granted ? "grow with access" : "grow", GROWTH_BYTES, "micros", median(nanos));
    }

    private void copies(int home, int peer) {
        try (OnePool there = new OnePool(home);
                OnePool here = new OnePool(peer)) {
            long source = there.allocate(COPY_BYTES);
            long target = here.allocate(COPY_BYTES);
            there.fill(source, (byte) 5);
            print(
                    home,
                    peer,
                    "copy by cuMemcpyPeer, no access",
                    COPY_BYTES,
                    "GB/s",
                    rate(
                            home,
                            there.stream,
                            () -> driver.copies()
                                    .betweenDevices(peer, target, home, source, COPY_BYTES, there.stream)));
            there.access.grant(peer);
            print(
                    home,
                    peer,
                    "copy by cuMemcpyPeer, access",
                    COPY_BYTES,
                    "GB/s",
                    rate(
                            home,
                            there.stream,
                            () -> driver.copies()
                                    .betweenDevices(peer, target, home, source, COPY_BYTES, there.stream)));
            print(
                    home,
                    peer,
                    "peer copies from the pool",
                    COPY_BYTES,
                    "GB/s",
                    rate(
                            peer,
                            here.stream,
                            () -> driver.copies().onDevice(peer, target, source, COPY_BYTES, here.stream)));
            print(
                    home,
                    peer,
                    "peer copies into the pool",
                    COPY_BYTES,
                    "GB/s",
                    rate(
                            peer,
                            here.stream,
                            () -> driver.copies().onDevice(peer, source, target, COPY_BYTES, here.stream)));
            if (!DriverNamed.holdsOnly(driver, peer, here.stream, target, COPY_BYTES, (byte) 5)) {
                throw new IllegalStateException("device " + peer + " copied something else from device " + home);
            }
            there.access.revoke(peer);
        }
    }

    private double rate(int ordinal, long stream, Runnable copy) {
        return DriverNamed.gigabytesPerSecond(driver, ordinal, stream, COPIES, COPY_BYTES, copy);
    }

    private static double median(long[] nanos) {
        Arrays.sort(nanos);
        return nanos[nanos.length / 2] / 1e3;
    }

    private void print(int home, int peer, String what, long byteSize, String unit, double value) {
        System.out.printf(
                Locale.ROOT,
                "{\"program\":\"peers\",\"device\":\"%s\",\"home\":%d,\"peer\":%d,\"case\":\"%s\",\"bytes\":%d,"
                        + "\"unit\":\"%s\",\"value\":%.2f}%n",
                device,
                home,
                peer,
                what,
                byteSize,
                unit,
                value);
    }

    /// A pool that keeps its memory, with a stream, and one block at a time.
    private final class OnePool implements AutoCloseable {
        final int home;
        final long stream;
        final long pool;
        final PoolAccess access;
        private long block;

        OnePool(int home) {
            this.home = home;
            stream = driver.streams().create(home);
            pool = driver.pools().create(MemoryPoolProperties.onDevice(home));
            driver.pools().setAttribute(home, pool, PoolAttribute.RELEASE_THRESHOLD, Long.MAX_VALUE);
            access = new PoolAccess(driver, home, pool);
        }

        long allocate(long byteSize) {
            block = driver.pools().allocateFrom(home, pool, byteSize, stream);
            return block;
        }

        void fill(long address, byte value) {
            driver.copies().fillBytes(home, address, value, COPY_BYTES, stream);
            driver.streams().synchronize(home, stream);
        }

        @Override
        public void close() {
            driver.pools().free(home, block, stream);
            driver.streams().synchronize(home, stream);
            driver.pools().destroy(home, pool);
            driver.streams().destroy(home, stream);
        }
    }
}
