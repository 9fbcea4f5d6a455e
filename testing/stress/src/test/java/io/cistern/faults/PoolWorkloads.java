package io.cistern.faults;

import io.cistern.Admission;
import io.cistern.Allocator;
import io.cistern.Currents;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.MemoryMeasure;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.Registration;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.async.sharing.PoolAccess;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DriverCall;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.ConfigurationException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.TrimMode;
import java.util.Optional;
import java.util.OptionalLong;

/// What programs do with pools, limits and several allocators.
final class PoolWorkloads {
    private static final long MIB = 1 << 20;

    private PoolWorkloads() {}

    /// Pools that are asked what they are, opened to another device, begun on one thread and released.
    static void peers(GpuProgram program) {
        String spec = program.allocator.spec().text();
        MemoryPool pool = program.memory.pools().open(spec);
        program.toClose.add(pool);
        program.allocate(pool, 3 * MIB, 0);
        program.allocate(pool, 5000, 1);
        try {
            RefusalWorkloads.refused(program, () -> pool.openTo(0, 1), DriverCall.MEM_SET_ACCESS);
            pool.openTo(0, 1);
        } catch (UnsupportedOperationException _) {
            // Its memory is the driver's business.
        }
        program.allocate(pool, 30 * MIB, 0);
        new PoolAccess(program.gpu, 0, program.gpu.pools().defaultPool(0)).of(1);
        program.memory.pools().all().getFirst().liveBlocks();
        program.memory.pools().begin(pool, 0);
        program.allocate(5000, 0);
        program.memory.pools().end(pool, 0);
        program.memory.pools().trimAllOthers(0, 0, TrimMode.WITHOUT_WAITING);
        program.memory.pools().release(pool.id());
        try {
            program.memory.pools().wake("no such tag");
        } catch (IllegalArgumentException _) {
            // As it must be.
        }
        program.freeAll(1);
    }

    /// The current allocator is exchanged in each of the ways that a program has.
    static void currents(GpuProgram program) {
        Currents currents = program.memory.currents();
        Allocator second = program.memory.open("direct");
        program.toClose.add(second);
        currents.compareAndSet(0, second, program.allocator);
        currents.compareAndSet(0, program.allocator, second);
        program.allocate(5000, 0);
        currents.set(0, program.allocator);
        currents.reload();
        program.memory.setCurrent("direct"); // which closes once it is current no more
        currents.set(program.allocator);
        program.freeAll(0);
        second.close();
    }

    /// Another device memory is opened on the same device, used, and closed while a block is alive.
    static void secondMemory(GpuProgram program) {
        DeviceMemory second = DeviceMemory.builder(program.gpu)
                .catalog(program.memory.currents().catalog())
                .leakLevel(LeakLevel.SITES)
                .open();
        program.toClose.add(second);
        program.toClose.add(
                () -> second.liveBlocks().forEach(block -> second.free(block.address(), program.streams[0])));
        second.setCurrent(program.allocator.spec().text());
        second.free(second.allocate(MIB, 0, program.streams[0]), program.streams[0]);
        long block = second.allocate(MIB, 0, program.streams[0]);
        long event = program.event(0);
        second.close();
        second.freeAfter(block, event);
    }

    /// More scopes with limits than there were routes, most of them forgotten by the program.
    static void limits(GpuProgram program) throws InterruptedException {
        program.toClose.add(
                program.memory.listeners().onThreshold(0, MemoryMeasure.REQUESTED, 4 * MIB, (_, _, _) -> {}));
        for (int limit = 0; limit < 70; limit++) {
            try (Scope _ = program.allocator.enter(ScopeOptions.all().limit(MemoryLimit.of("limit " + limit, MIB)))) {
                program.allocate(5000, 0);
            }
        }
        for (int tries = 0; tries < 6; tries++) {
            if (tries == 3) {
                program.freeAll(0);
            }
            if (tries % 3 == 0) {
                System.gc();
            }
            Thread.sleep(1);
            try (Scope _ = program.allocator.enter(ScopeOptions.all().limit(MemoryLimit.of("next", MIB)))) {
                program.allocate(5000, 0);
            }
        }
        program.freeAll(0);
    }

    /// Limits that begin while blocks are alive, a reserve, and memory that others take.
    static void liveLimits(GpuProgram program) {
        MemoryLimit scoped = MemoryLimit.of("scoped", program.memory, 0.5).child("below", 100 * MIB);
        try (Scope _ = program.allocator.enter(ScopeOptions.all().limit(scoped))) {
            program.allocate(5000, 0);
        }
        program.allocate(5000, 0);
        MemoryLimit own = program.allocator.limit();
        own.usedBytes();
        own.setByteSize(200 * MIB);
        program.memory.limits().device(0).setShare(0.5);
        program.toClose.add(program.memory.open("direct"));
        try (Scope _ = program.allocator.enter(ScopeOptions.all().limit(scoped))) {
            program.allocate(5000, 0);
        }
        program.freeAll(0);
        own.setByteSize(MIB);
        program.memory.limits().device(0).lift();
        own.lift();
        program.memory.limits().setReserve(0, GpuProgram.CAPACITY);
        program.memory.limits().setReserve(0, 10 * MIB);
        try (Admission admission = program.memory.admit(0, 5000)) {
            admission.taken();
        }
        program.memory.limits().setReserve(0, 0);
    }

    /// Allocators that the program made, and those around others.
    static void made(GpuProgram program) {
        Registration threshold =
                program.memory.listeners().onThreshold(0, MemoryMeasure.REQUESTED, 4 * MIB, (_, _, _) -> {});
        program.toClose.add(threshold);
        Allocator made = program.memory.open(OpenOptions.made("made", new Made(program)));
        program.toClose.add(made);
        program.allocate(made, 5000, 0);
        program.memory.recordUse(program.block(0), program.streams[1]);
        Allocator around = program.memory.open(OpenOptions.around("around", program.allocator, Around::new));
        program.toClose.add(around);
        long used = program.allocate(around, 5000, 0);
        program.memory.recordUse(used, program.streams[1]);
        around.trim(0, 0, TrimMode.SYNCHRONIZE);
        around.reservedBytes(0);
        try {
            program.allocate(around, 2 * GpuProgram.CAPACITY, 0);
        } catch (DeviceOutOfMemoryException _) {
            // The device has not got as much.
        }
        try {
            if (program.gpu.memory().freeBytes(0) > 600 * MIB) {
                program.takeForeign(500 * MIB);
            }
            program.allocate(made, 700 * MIB, 0);
        } catch (DeviceOutOfMemoryException _) {
            // Others have it.
        }
        program.freeAll(0);
        around.close();
        try (DeviceAllocator upstream = made.asUpstream();
                MemoryPool over =
                        MemoryPool.builder(program.memory).upstream(made).open()) {
            upstream.free(upstream.allocate(5000, 0, 0), 5000, 0, 0);
            program.allocate(over, 5000, 0);
            program.freeAll(0);
        } catch (DeviceOutOfMemoryException _) {
            // Others have it.
        }
        made.close();
        made.trim(0, 0, TrimMode.SYNCHRONIZE);
        threshold.close();
    }

    /// What can't be opened.
    static void misspelt(GpuProgram program) {
        try {
            program.toClose.add(program.memory.open("caching:no_such_option=1"));
        } catch (ConfigurationException _) {
            // As it must be.
        }
        try {
            program.toClose.add(MemoryPool.builder(program.memory)
                    .functions((_, _) -> 0, (_, _, _) -> {})
                    .byteAlignment(3)
                    .open());
        } catch (ConfigurationException _) {
            // As it must be.
        }
    }

    /// A route of the kernel, without all that stands around it.
    static void route(GpuProgram program) {
        Router router = new Router();
        Route route = router.routes().open("alone", 0, new Made(program), null, () -> {});
        router.routes().close(route);
    }

    /// A request waits for frees that do not come, and takes what others give up after their work, which is too
    /// little.
    static void waits(GpuProgram program) {
        if (program.allocator.name().equals("symmetric")) {
            return; // whose segments are half of the device
        }
        Allocator other = program.memory.open(OpenOptions.spec(program.allocator.spec()));
        program.toClose.add(other);
        program.takeForeign(500 * MIB);
        program.allocate(3 * MIB, 0);
        long its = program.allocate(other, 50 * MIB, 1);
        program.gpu.keepBusy(0, program.streams[1], 1_000_000);
        program.free(its, 1);
        try {
            program.allocate(700 * MIB, 2);
        } catch (DeviceOutOfMemoryException _) {
            // As it must be.
        }
        program.freeAll(0);
    }

    /// Buffers of a program that looks for dropped ones.
    static void buffers(GpuProgram program) {
        DeviceBuffer buffer = DeviceBuffer.allocate(program.memory, 5000, 0, program.streams[0]);
        program.toClose.add(buffer);
        buffer.recordUse(program.streams[1]);
        buffer.close();
        DeviceBuffer second = DeviceBuffer.allocate(program.memory, 5000, 0, program.streams[0]);
        program.toClose.add(second);
        second.closeAfter(program.event(1));
    }

    /// An allocator that fails at what it need not do.
    private record Made(GpuProgram program) implements DeviceAllocator, MemoryReclaim {
        @Override
        public OptionalLong reclaim(ReclaimStep step, DeviceOutOfMemoryException refusal, long stream) {
            throw new IllegalStateException("broken");
        }

        @Override
        public void failed(DeviceOutOfMemoryException refusal) {
            throw new IllegalStateException("broken");
        }

        @Override
        public <T> Optional<T> extension(Class<T> type) {
            return type.isInstance(this) ? Optional.of(type.cast(this)) : Optional.empty();
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            try {
                return program.gpu.memory().allocate(device, byteSize);
            } catch (CudaException none) {
                throw new DeviceOutOfMemoryException(byteSize, device, "no memory", none);
            }
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            program.gpu.memory().free(device, address);
        }
    }

    private static final class Around extends AllocatorAdaptor {
        Around(DeviceAllocator upstream) {
            super(upstream);
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return upstream().allocate(byteSize, device, stream);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            upstream().free(address, byteSize, device, stream);
        }
    }

    /// A thread allocates outside scopes while another one is in one.
    static void scopesOfOthers(GpuProgram program) throws InterruptedException {
        Thread other = Thread.ofPlatform().daemon().start(() -> {
            try (Scope _ = program.allocator.enter()) {
                program.inScope.countDown();
                program.mayLeave.await();
            } catch (InterruptedException ends) {
                Thread.currentThread().interrupt();
            }
        });
        program.toClose.add(program.mayLeave::countDown);
        program.inScope.await();
        program.allocate(5000, 0);
        program.mayLeave.countDown();
        other.join();
        program.freeAll(0);
    }
}
