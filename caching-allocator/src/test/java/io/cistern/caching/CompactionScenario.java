package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.Listeners.WorkPause;
import io.cistern.Registration;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.SplittableRandom;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/// A random program on a device that is too small for it: threads with a stream each allocate, fill, look at
/// and free blocks, some of which another stream uses too; live memory is moved in the middle of it, by
/// requests and on demand; streams are captured, driver calls fail, and something else takes what the device has
/// left. Each thread gives work under the shared side of a lock whose exclusive side is the pause.
final class CompactionScenario {
    private static final int DEVICE = 0;
    private static final long MIB = 1 << 20;
    private static final long GIB = 1L << 30;
    private static final long CAPACITY = 8 * GIB;
    private static final int OPERATIONS = 60;
    private static final DriverCall[] FAILING = {
        DriverCall.MEM_CREATE,
        DriverCall.MEM_MAP,
        DriverCall.MEM_UNMAP,
        DriverCall.MEM_SET_ACCESS,
        DriverCall.MEM_RELEASE,
        DriverCall.MEMCPY_DTOD_ASYNC,
        DriverCall.MEM_ADDRESS_RESERVE
    };

    private final long seed;
    private final SplittableRandom random;
    private final ReentrantReadWriteLock work = new ReentrantReadWriteLock();
    private boolean isAlone;
    private long onHost;
    private final List<Throwable> thrown = new ArrayList<>();
    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(CAPACITY).build();

    private record Block(long address, long byteSize, byte value) {}

    CompactionScenario(long seed) {
        this.seed = seed;
        this.random = new SplittableRandom(seed);
    }

    private static <T> List<T> all(Class<T> service) {
        return ServiceLoader.load(service).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    /// Runs it.
    ///
    /// @return how often live memory moved
    /// @throws AssertionError if a byte is wrong, or memory is missing at the end
    long run() throws InterruptedException {
        DeviceMemory memory = DeviceMemory.builder(gpu)
                .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
                .open();
        memory.setCurrent("caching");
        memory.free(memory.allocate(6 * GIB, DEVICE, 1), 1); // pages are large from now on
        memory.current(DEVICE).trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        Registration pause = memory.listeners().onCompaction(WorkPause.of(work));
        int threads = 1 + random.nextInt(3);
        isAlone = threads == 1;
        List<Thread> running = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            SplittableRandom own = random.split();
            running.add(Thread.ofPlatform().start(() -> runThread(memory, own)));
        }
        for (Thread each : running) {
            each.join();
        }
        assertThat(thrown).as("seed " + seed).isEmpty();
        Map<String, Long> figures = memory.current(DEVICE).memoryStatistics(DEVICE);
        long moved = figures.getOrDefault("pages.split", 0L);
        onHost = figures.getOrDefault("compaction.host_pages", 0L);
        pause.close();
        gpu.faults().clear();
        gpu.holdBack(DEVICE, 0);
        memory.close();
        assertThat(gpu.misuses()).as("seed " + seed).isEmpty();
        awaitFree();
        return moved;
    }

    /// Pages that went by way of the host.
    long onHost() {
        return onHost;
    }

    /// The driver ends graphs on a thread of its own.
    private void awaitFree() throws InterruptedException {
        for (int i = 0; i < 1000 && gpu.memory().freeBytes(DEVICE) != CAPACITY; i++) {
            Thread.sleep(1);
        }
        assertThat(gpu.memory().freeBytes(DEVICE)).as("seed " + seed).isEqualTo(CAPACITY);
    }

    private void runThread(DeviceMemory memory, SplittableRandom own) {
        try (Arena arena = Arena.ofConfined()) {
            new Worker(memory, own, arena.allocate(ValueLayout.JAVA_BYTE)).run();
        } catch (RuntimeException | AssertionError failure) {
            synchronized (thrown) {
                thrown.add(failure);
            }
        }
    }

    private final class Worker {
        private final DeviceMemory memory;
        private final SplittableRandom own;
        private final MemorySegment host;
        private final long stream = gpu.streams().create(DEVICE);
        private final long second = gpu.streams().create(DEVICE);
        private final List<Block> blocks = new ArrayList<>();
        private byte value;

        Worker(DeviceMemory memory, SplittableRandom own, MemorySegment host) {
            this.memory = memory;
            this.own = own;
            this.host = host;
        }

        void run() {
            for (int i = 0; i < OPERATIONS; i++) {
                step(own.nextInt(100));
            }
            while (!blocks.isEmpty()) {
                free();
            }
        }

        private void step(int what) {
            if (what < 50) {
                allocate();
            } else if (what < 85) {
                free();
            } else if (what < 92) {
                compact();
            } else if (what < 94) {
                fail();
            } else if (what < 96) {
                gpu.holdBack(DEVICE, own.nextInt(3) * own.nextLong(CAPACITY / 2));
            } else {
                capture();
            }
        }

        private void allocate() {
            long byteSize = own.nextInt(4) == 0 ? 1 + own.nextInt(64 << 10) : MIB + own.nextLong(400 * MIB);
            long address;
            try {
                address = memory.allocate(byteSize, DEVICE, stream);
            } catch (DeviceOutOfMemoryException | CudaException refused) {
                return;
            }
            Block block = new Block(address, byteSize, ++value);
            locked(() -> fill(block));
            blocks.add(block);
        }

        /// Both ends and the middle.
        private void fill(Block block) {
            long some = Math.min(block.byteSize, 512);
            for (long offset : new long[] {0, (block.byteSize - some) / 2, block.byteSize - some}) {
                gpu.copies().fillBytes(DEVICE, block.address + offset, block.value, some, stream);
            }
        }

        private void free() {
            if (blocks.isEmpty()) {
                return;
            }
            Block block = blocks.remove(own.nextInt(blocks.size()));
            check(block, 0);
            check(block, block.byteSize - 1);
            check(block, block.byteSize / 2);
            memory.free(block.address, own.nextInt(4) == 0 ? second : stream);
        }

        private void check(Block block, long offset) {
            locked(() -> {
                gpu.copies().toHost(DEVICE, host, block.address + offset, 1, stream);
                gpu.streams().synchronize(DEVICE, stream);
            });
            assertThat(host.get(ValueLayout.JAVA_BYTE, 0)).as("seed " + seed).isEqualTo(block.value);
        }

        private void locked(Runnable giving) {
            work.readLock().lock();
            try {
                giving.run();
            } finally {
                work.readLock().unlock();
            }
        }

        private void compact() {
            try {
                memory.current(DEVICE).compact(DEVICE);
            } catch (CudaException refused) {
                assertThat(refused.result()).as("seed " + seed).isEqualTo(CudaResult.NOT_SUPPORTED);
            }
        }

        /// Only where no other thread is in the middle of something that has nothing to do with it.
        private void fail() {
            if (!isAlone) {
                return;
            }
            gpu.faults().failOn(FAILING[own.nextInt(FAILING.length)], own.nextInt(12), 1, CudaResult.NOT_SUPPORTED);
        }

        /// A graph that fills a block of its own. Other threads' waits for the device would end it.
        private void capture() {
            gpu.faults().clear();
            if (!isAlone) {
                return;
            }
            try (GraphCapture capture = GraphCapture.begin(memory, DEVICE, second, CaptureMode.THREAD_LOCAL)) {
                long address = memory.allocate(MIB, DEVICE, second);
                gpu.copies().fillBytes(DEVICE, address, (byte) 7, MIB, second);
                memory.free(address, second);
                try (CudaGraph graph = capture.endAndInstantiate()) {
                    locked(() -> graph.launch(second));
                    locked(() -> gpu.streams().synchronize(DEVICE, second));
                }
            } catch (DeviceOutOfMemoryException | CudaException refused) {
                assertThat(refused).as("seed " + seed).isNotNull();
            }
        }
    }
}
