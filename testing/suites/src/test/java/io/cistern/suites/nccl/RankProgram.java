package io.cistern.suites.nccl;

import io.cistern.MemoryPool;
import io.cistern.nccl.UniqueId;
import io.cistern.nccl.Window;
import io.cistern.suites.DriverUnderTest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// Runs one rank in a process of its own: reads the id from a file that rank 0 writes, and checks every
/// collective together with the other ranks.
///
/// ```text
/// RankProgram ID-FILE RANKS RANK DEVICE
/// ```
///
/// Prints `rank N passed` at the end. On a failure it prints the failure and exits with 1.
public final class RankProgram {
    private static final long MIB = 1L << 20;
    private static final long GIB = 1L << 30;
    private static final int POLL_MILLIS = 10;

    private RankProgram() {}

    /// Runs one rank.
    public static void main(String[] arguments) throws Exception {
        int rank = Integer.parseInt(arguments[2]);
        run(Path.of(arguments[0]), Integer.parseInt(arguments[1]), rank, Integer.parseInt(arguments[3]));
        System.out.println("rank " + rank + " passed");
    }

    private static void run(Path idFile, int rankCount, int rank, int device) {
        try (Ranks ranks = Ranks.made(DriverUnderTest.open(), nccl -> {
            UniqueId id = rank == 0 ? written(nccl.uniqueId(), idFile) : awaited(idFile);
            return List.of(nccl.initRank(id, rankCount, rank, device));
        })) {
            registered(ranks, "nccl");
            registered(ranks, "vmm");
            registered(ranks, "vmm:location=host_numa");
            inWindow(ranks);
        }
    }

    private static UniqueId written(UniqueId id, Path file) {
        try {
            id.writeTo(file);
            return id;
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static UniqueId awaited(Path file) {
        try {
            while (!Files.exists(file)) {
                Thread.sleep(POLL_MILLIS);
            }
            return UniqueId.readFrom(file);
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void registered(Ranks ranks, String spec) {
        try (MemoryPool pool = ranks.memory.pools().open(spec);
                CollectiveChecks checks = new CollectiveChecks(ranks, pool)) {
            ranks.all.getFirst().register(pool);
            checks.moves();
            if (spec.equals("nccl")) {
                checks.reductions();
                checks.sums(GIB);
            }
            for (long byteSize : new long[] {8, 1 << 10, MIB, 64 * MIB}) {
                checks.sums(byteSize);
            }
            checks.nothingWentWrong();
        }
    }

    private static void inWindow(Ranks ranks) {
        try (MemoryPool pool = ranks.memory.pools().open("symmetric:bytes=256MiB");
                CollectiveChecks checks = new CollectiveChecks(ranks, pool);
                Window _ = window(ranks, pool)) {
            checks.moves();
            for (long byteSize : new long[] {8, MIB, 16 * MIB}) {
                checks.sums(byteSize);
            }
        } catch (UnsupportedOperationException noWindows) {
            System.out.println("no windows: " + noWindows.getMessage());
        }
    }

    private static Window window(Ranks ranks, MemoryPool pool) {
        return ranks.all.getFirst().registerWindow(pool);
    }
}
