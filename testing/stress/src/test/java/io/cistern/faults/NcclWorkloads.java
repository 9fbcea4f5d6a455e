package io.cistern.faults;

import io.cistern.MemoryPool;
import io.cistern.cuda.DriverCall;
import io.cistern.nccl.BufferRegistration;
import io.cistern.nccl.Communicator;
import io.cistern.nccl.Nccl;
import io.cistern.nccl.RefusingNccl;
import io.cistern.nccl.Window;
import io.cistern.spi.TrimMode;
import java.util.List;

/// What programs do with memory that communicators register.
final class NcclWorkloads {
    private static final long MIB = 1 << 20;

    private NcclWorkloads() {}

    /// A pool with a window, which ends before the window does.
    static void windows(GpuProgram program) {
        MemoryPool pool = program.memory.pools().open("symmetric:bytes=4MiB");
        program.toClose.add(pool);
        Communicator rank = Nccl.of(program.memory).initAll(0).getFirst();
        program.toClose.add(rank);
        program.allocate(pool, MIB, 0);
        BufferRegistration registration = rank.register(pool);
        registration.registeredBytes();
        Window first = rank.registerWindow(pool);
        program.toClose.add(first);
        Window second = rank.registerWindow(pool);
        program.toClose.add(second);
        first.close();
        program.freeAll(0);
        pool.close();
        second.close();
        registration.close();
    }

    /// Pools that grow, shrink and end while a communicator is in a call.
    static void besideCalls(GpuProgram program) throws InterruptedException {
        for (String spec : List.of("nccl", "vmm")) {
            MemoryPool pool = program.memory.pools().open(spec);
            program.toClose.add(pool);
            Communicator rank = Nccl.of(program.memory).initAll(0).getFirst();
            program.toClose.add(rank);
            program.free(program.allocate(pool, 2 * MIB, 0), 0);
            rank.register(pool);
            RefusingNccl.besideCall(rank, () -> {
                program.free(program.allocate(pool, 40 * MIB, 0), 0);
                pool.trim(0, 0, TrimMode.SYNCHRONIZE);
                pool.close();
            });
            rank.close();
        }
    }

    /// NCCL refuses to take memory, to register it, and to take it back.
    static void refusals(GpuProgram program) {
        RefusingNccl nccl = new RefusingNccl(program.memory);
        MemoryPool pool = nccl.pool();
        program.toClose.add(pool);
        Communicator rank = nccl.rank();
        program.toClose.add(rank);
        program.toClose.add(nccl::refuse); // first in the end: what is closed then can go
        nccl.registersNothing(true);
        program.allocate(pool, 2 * MIB, 0);
        BufferRegistration registration = rank.register(pool);
        program.allocate(pool, 4 * MIB, 0);
        nccl.registersNothing(false);
        nccl.refuse("register");
        program.allocate(pool, 8 * MIB, 0);
        nccl.refuse("deregister", "free");
        program.freeAll(0);
        pool.trim(0, 0, TrimMode.SYNCHRONIZE);
        nccl.refuse();
        program.allocate(pool, 16 * MIB, 0);
        nccl.refuse("deregister");
        program.freeAll(0);
        pool.trim(0, 0, TrimMode.SYNCHRONIZE);
        nccl.refuse();
        registration.close();
        pool.close();
    }

    /// The driver refuses to take back what a source of pages tries handles with.
    static void trials(GpuProgram program) {
        MemoryPool pool = program.memory.pools().open("vmm");
        program.toClose.add(pool);
        RefusalWorkloads.refused(program, () -> program.allocate(pool, 3 * MIB, 0), DriverCall.MEM_RELEASE);
        program.freeAll(0);
    }
}
