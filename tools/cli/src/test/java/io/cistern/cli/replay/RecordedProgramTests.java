package io.cistern.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.adaptors.TraceLog;
import io.cistern.cli.ProgramRun;
import io.cistern.cli.common.InputException;
import io.cistern.cli.common.Plugins;
import io.cistern.cli.common.ReplayDevice;
import io.cistern.cli.common.Work;
import io.cistern.cli.trace.Trace;
import io.cistern.cli.trace.TraceReader;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A program of several threads and streams is recorded, and its trace replayed.
final class RecordedProgramTests {
    private static final int THREADS = 4;
    private static final int ROUNDS = 150;
    private static final long MAX_BYTES = 3 << 20;

    @TempDir
    private Path folder;

    private Path recorded;
    private Allocator allocator;

    /// Each thread produces blocks on a stream of its own and hands every third one to the next thread's
    /// stream: that stream waits, uses the block, and either frees it or makes its own stream wait and free it.
    @BeforeEach
    void recordAProgram() throws Exception {
        recorded = folder.resolve("program.csv.gz");
        try (SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
                DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open()) {
            allocator = memory.setCurrent("logging:file=\"" + recorded + "\",upstream=caching");
            TraceLog log = allocator.extension(TraceLog.class).orElseThrow();
            long[] streams = Stream.generate(() -> gpu.streams().create(0))
                    .limit(THREADS)
                    .mapToLong(Long::longValue)
                    .toArray();
            List<Thread> threads = new ArrayList<>();
            for (int number = 0; number < THREADS; number++) {
                int own = number;
                threads.add(Thread.ofPlatform()
                        .start(() -> work(memory, log, new Random(own), streams[own], streams[(own + 1) % THREADS])));
            }
            for (Thread thread : threads) {
                thread.join();
            }
            memory.streamClosing(0, streams[0]);
            assertThat(allocator.statistics(0).allocations()).isEqualTo(THREADS * ROUNDS);
            assertThat(log.failure()).isEmpty();
        }
    }

    private static void work(DeviceMemory memory, TraceLog log, Random random, long own, long next) {
        CudaDriver driver = memory.driver();
        for (int round = 0; round < ROUNDS; round++) {
            long byteSize = 1 + random.nextLong(MAX_BYTES);
            long address = memory.allocate(byteSize, 0, own);
            driver.copies().fillBytes(0, address, (byte) round, byteSize, own);
            long last = own;
            if (round % 3 == 0) {
                await(driver, log, next, own);
                driver.copies().fillBytes(0, address, (byte) 1, byteSize, next);
                log.used(address, 0, next);
                last = next;
            }
            if (round % 6 == 0) {
                await(driver, log, own, next);
                last = own;
            }
            memory.free(address, last);
        }
    }

    private static void await(CudaDriver driver, TraceLog log, long stream, long awaited) {
        long event = driver.events().create(0);
        driver.events().record(0, event, awaited);
        driver.streams().await(0, stream, event);
        driver.events().destroy(0, event);
        log.streamWaits(0, stream, awaited);
    }

    @Test
    void theTraceHasEveryCallOfTheProgram() throws Exception {
        Trace trace = TraceReader.read(recorded);

        assertThat(trace.operations()).isEqualTo(2 * THREADS * ROUNDS);
        assertThat(trace.streamCount()).isEqualTo(THREADS);
        assertThat(rows(trace, Trace.ALLOCATE)).isEqualTo(THREADS * ROUNDS);
        assertThat(rows(trace, Trace.FREE)).isEqualTo(THREADS * ROUNDS);
        assertThat(rows(trace, Trace.USE)).isEqualTo(THREADS * ROUNDS / 3);
        // Every wait the program needed is noted, so the reader has none to put in.
        assertThat(rows(trace, Trace.WAIT)).isEqualTo(THREADS * (ROUNDS / 3 + ROUNDS / 6));
        assertThat(rows(trace, Trace.END)).isOne();
    }

    /// The replay is recorded in turn: what reaches the allocator is the same, in the same order.
    @Test
    void aReplayAsksForTheSameInTheSameOrder() throws Exception {
        Path again = folder.resolve("again.csv");
        ProgramRun run = replay("--allocator", "logging:file=\"" + again + "\",upstream=caching", "--repeat=1");

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out()).contains("\"operations\":" + 2 * THREADS * ROUNDS, "\"failures\":0");
        assertThat(operations(again)).isEqualTo(operations(recorded));
    }

    @Test
    void theWaitsOfTheProgramAreWaitsOfTheReplay() throws Exception {
        Trace trace = TraceReader.read(recorded).onOneThread();
        CudaDriver driver = SimulatedGpu.builder().devices(1).build();
        ReplayDevice gpu = new ReplayDevice.Real(driver, 0, OptionalLong.empty());
        new ReplaySession(
                        trace,
                        "caching",
                        Routing.Plan.ONE_ALLOCATOR,
                        gpu,
                        Plugins.catalog(),
                        2,
                        () -> {},
                        (_, _) -> true,
                        null,
                        null)
                .timed(Work.NONE);

        assertThat(driver.calls().of(DriverCall.STREAM_WAIT_EVENT)).isEqualTo(2 * rows(trace, Trace.WAIT));
        driver.close();
    }

    @Test
    void contentsStayWhileAllocatorsAreSwappedAndScopesEntered() {
        for (String plan : new String[] {"--scopes", "--swap-every=7", "--scopes --swap-every=50"}) {
            List<String> options = new ArrayList<>(List.of(plan.split(" ")));
            options.addAll(List.of("--allocator=caching", "--allocator=async", "--work=check"));
            ProgramRun run = replay(options.toArray(String[]::new));
            assertThat(run.exitCode()).as(run.err()).isZero();
            assertThat(run.out().lines())
                    .hasSize(2)
                    .allMatch(line -> line.contains("\"mismatches\":0") && line.contains("\"unreturnedBytes\":0"));
        }
    }

    /// Recorded with `recordUse` in place of waits: no row orders the frees after the uses.
    @Test
    void recordedUsesAreRecordedInTheReplay() throws Exception {
        Path program = folder.resolve("uses.csv");
        try (SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
                DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open()) {
            Allocator logged = memory.setCurrent("logging:file=\"" + program + "\",upstream=caching");
            TraceLog log = logged.extension(TraceLog.class).orElseThrow();
            long own = gpu.streams().create(0);
            long other = gpu.streams().create(0);
            for (int round = 0; round < ROUNDS; round++) {
                long address = memory.allocate(1 + round * 4096L, 0, own);
                await(gpu, log, other, own);
                memory.recordUse(address, other);
                memory.free(address, own);
            }
        }
        Trace trace = TraceReader.read(program);
        assertThat(rows(trace, Trace.USE)).isEqualTo(ROUNDS);
        assertThat(rows(trace, Trace.WAIT)).isEqualTo(ROUNDS);

        ProgramRun run = ProgramRun.inProcess(
                "replay",
                program.toString(),
                "--device=simulated",
                "--format=jsonl",
                "--allocator=caching",
                "--allocator=async",
                "--allocator=direct",
                "--work=check");

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out().lines()).hasSize(3).allMatch(line -> line.contains("\"mismatches\":0"));
    }

    private ProgramRun replay(String... options) {
        return ProgramRun.inProcess(Stream.concat(
                        Stream.of("replay", recorded.toString(), "--device=simulated", "--format=jsonl"),
                        Stream.of(options))
                .toArray(String[]::new));
    }

    private static long rows(Trace trace, byte op) {
        long rows = 0;
        for (byte each : trace.ops()) {
            rows += each == op ? 1 : 0;
        }
        return rows;
    }

    /// Allocations and frees, with blocks and streams numbered in the order of their first row.
    private static List<String> operations(Path file) throws InputException {
        Trace trace = TraceReader.read(file);
        Map<Integer, Integer> streams = new HashMap<>();
        List<String> operations = new ArrayList<>();
        for (int row = 0; row < trace.ops().length; row++) {
            if (Trace.isOperation(trace.ops()[row])) {
                int stream = streams.computeIfAbsent(trace.streams()[row], _ -> streams.size());
                operations.add(
                        trace.ops()[row] + " " + trace.slots()[row] + " " + trace.byteSizes()[row] + " " + stream);
            }
        }
        return operations;
    }
}
