package io.cistern.faults;

import io.cistern.MemoryPool;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.nccl.NcclException;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import java.util.List;

/// What programs do while the driver refuses calls.
final class RefusalWorkloads {
    private static final long MIB = 1 << 20;

    private static final List<DriverCall> CALLS = List.of(
            DriverCall.MEM_FREE,
            DriverCall.MEM_FREE_ASYNC,
            DriverCall.MEM_POOL_TRIM_TO,
            DriverCall.MEM_CREATE,
            DriverCall.MEM_MAP,
            DriverCall.MEM_SET_ACCESS,
            DriverCall.MEM_UNMAP,
            DriverCall.MEM_RELEASE,
            DriverCall.MEM_ADDRESS_FREE,
            DriverCall.EVENT_CREATE,
            DriverCall.EVENT_RECORD,
            DriverCall.EVENT_QUERY,
            DriverCall.STREAM_SYNCHRONIZE,
            DriverCall.STREAM_WAIT_EVENT);

    private RefusalWorkloads() {}

    /// Each call is refused a few times, wherever it comes next.
    static void oneCall(GpuProgram program) {
        for (DriverCall call : CALLS) {
            for (int first = 0; first < 2; first++) {
                program.gpu.faults().failOn(call, first, 2, CudaResult.NOT_PERMITTED);
                traffic(program);
                program.gpu.faults().clear();
            }
            tolerant(() -> program.memory.trim(0, 0, TrimMode.SYNCHRONIZE));
        }
        program.freeAll(0);
    }

    /// The rollback of another refusal is refused too, and no fence is available.
    static void severalCalls(GpuProgram program) {
        if (program.allocator.name().matches("nccl|symmetric")) {
            return; // the simulated NCCL then keeps what the driver refuses
        }
        Runnable traffic = () -> traffic(program);
        refused(program, traffic, DriverCall.MEM_SET_ACCESS, DriverCall.MEM_UNMAP);
        refused(program, traffic, DriverCall.MEM_MAP, DriverCall.MEM_RELEASE);
        refused(program, traffic, DriverCall.MEM_UNMAP, DriverCall.MEM_RELEASE, DriverCall.MEM_ADDRESS_FREE);
        for (DriverCall fence : List.of(DriverCall.EVENT_CREATE, DriverCall.EVENT_RECORD)) {
            program.gpu.faults().failOn(fence, 0, Integer.MAX_VALUE, CudaResult.NOT_PERMITTED);
            program.gpu.faults().failOn(DriverCall.CONTEXT_RECORD_EVENT, 0, 9, CudaResult.NOT_PERMITTED);
            program.gpu.faults().failOn(DriverCall.CONTEXT_SYNCHRONIZE, 0, 1, CudaResult.NOT_PERMITTED);
            traffic(program);
            program.gpu.faults().clear();
        }
        program.freeAll(0);
    }

    /// Streams end while the driver refuses what their end needs.
    static void ends(GpuProgram program) {
        for (DriverCall call : List.of(
                DriverCall.EVENT_CREATE,
                DriverCall.EVENT_RECORD,
                DriverCall.MEM_UNMAP,
                DriverCall.MEM_RELEASE,
                DriverCall.MEM_ADDRESS_FREE)) {
            tolerant(() -> program.allocate(3 * MIB, 1));
            tolerant(() -> program.allocate(5000, 1));
            tolerant(() -> program.memory.recordUse(program.block(0), program.streams[2]));
            tolerant(() -> program.freeAll(1));
            refused(program, () -> program.endStream(1), call);
            tolerant(() -> program.endStream(2));
            tolerant(() -> program.memory.trim(0, 0, TrimMode.SYNCHRONIZE));
        }
        program.freeAll(0);
    }

    /// More frees than there is room for are refused.
    static void manyFrees(GpuProgram program) {
        for (int block = 0; block < 140; block++) {
            program.allocate(2 * MIB, block % 3);
        }
        for (DriverCall call : List.of(DriverCall.MEM_FREE, DriverCall.MEM_FREE_ASYNC, DriverCall.MEM_RELEASE)) {
            program.gpu.faults().failOn(call, 0, Integer.MAX_VALUE, CudaResult.NOT_PERMITTED);
        }
        program.freeAll(0);
        tolerant(() -> program.memory.trim(0, 0, TrimMode.SYNCHRONIZE));
        program.gpu.faults().clear();
    }

    /// Pools that sleep and wake while the driver refuses.
    static void sleeps(GpuProgram program) {
        if (!program.allocator.name().startsWith("caching")) {
            return;
        }
        MemoryPool pool = program.memory.pools().open(program.allocator.spec().text());
        program.toClose.add(pool);
        program.allocate(pool, 3 * MIB, 0);
        program.allocate(pool, 40 * MIB, 0);
        try {
            pool.sleep(SleepMode.KEEP);
        } catch (UnsupportedOperationException _) {
            return;
        }
        refused(program, pool::wake, DriverCall.MEM_MAP);
        program.gpu.faults().failOn(DriverCall.MEM_MAP, 1, 1, CudaResult.NOT_PERMITTED);
        program.gpu.faults().failOn(DriverCall.MEM_UNMAP, 0, Integer.MAX_VALUE, CudaResult.NOT_PERMITTED);
        program.gpu.faults().failOn(DriverCall.STREAM_SYNCHRONIZE, 0, 1, CudaResult.NOT_PERMITTED);
        tolerant(pool::wake);
        tolerant(() -> pool.sleep(SleepMode.KEEP));
        program.gpu.faults().clear();
        pool.wake();
        refused(program, () -> pool.sleep(SleepMode.KEEP), DriverCall.MEM_UNMAP);
        pool.wake();
        pool.sleep(SleepMode.KEEP);
        pool.sleep(SleepMode.DROP);
        pool.wake();
        program.freeAll(0);
    }

    private static void traffic(GpuProgram program) {
        tolerant(() -> program.allocate(3 * MIB, 0));
        tolerant(() -> program.allocate(40 * MIB, 1));
        tolerant(() -> program.allocate(5000, 0));
        tolerant(() -> program.memory.recordUse(program.block(0), program.streams[1]));
        tolerant(() -> program.free(program.block(0), 2));
        tolerant(() -> program.allocate(20 * MIB, 2));
        tolerant(() -> program.freeAll(1));
        tolerant(() -> program.memory.trim(0, MIB, TrimMode.WITHOUT_WAITING));
        tolerant(() -> program.memory.trim(0, 0, TrimMode.SYNCHRONIZE));
    }

    /// Does something while the next calls of some functions are refused.
    static void refused(GpuProgram program, Runnable step, DriverCall... calls) {
        for (DriverCall call : calls) {
            program.gpu.faults().failOn(call, 0, 1, CudaResult.NOT_PERMITTED);
        }
        try {
            tolerant(step);
        } finally {
            program.gpu.faults().clear();
        }
    }

    /// What a program sees of a refusal. An error of the Java heap does not count as one.
    static void tolerant(Runnable step) {
        try {
            step.run();
        } catch (CudaException | NcclException | DeviceOutOfMemoryException refused) {
            for (Throwable each = refused; each != null; each = each.getCause()) {
                if (each instanceof OutOfMemoryError full) {
                    throw full;
                }
            }
        }
    }
}
