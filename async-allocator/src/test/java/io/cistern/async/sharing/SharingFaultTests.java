package io.cistern.async.sharing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.errors.SharingException;
import io.cistern.simulated.SimulatedGpu;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Each driver call that sharing makes fails once, on either side; then all is done again and must work, and
/// what was made in between must be gone.
@EnabledOnOs(OS.LINUX)
class SharingFaultTests {
    private static final int ROUNDS = 3;

    private TwoGpus gpus;

    @BeforeEach
    void open(@TempDir Path folder) {
        gpus = new TwoGpus(folder);
    }

    @AfterEach
    void close() {
        gpus.close();
    }

    /// A side, a call of it, and which of its calls fails.
    record Fault(boolean inOwner, DriverCall call, int after) {}

    static Stream<Fault> faults() {
        List<DriverCall> ownerCalls = List.of(
                DriverCall.MEM_POOL_CREATE,
                DriverCall.MEM_POOL_EXPORT,
                DriverCall.DEVICE_GET_UUID,
                DriverCall.POINTER_GET_ATTRIBUTE,
                DriverCall.MEM_GET_ADDRESS_RANGE,
                DriverCall.MEM_POOL_EXPORT_POINTER,
                DriverCall.EVENT_CREATE,
                DriverCall.IPC_GET_EVENT_HANDLE,
                DriverCall.EVENT_RECORD,
                DriverCall.IPC_OPEN_EVENT_HANDLE,
                DriverCall.EVENT_QUERY,
                DriverCall.EVENT_DESTROY);
        List<DriverCall> guestCalls = List.of(
                DriverCall.DEVICE_GET_UUID,
                DriverCall.MEM_POOL_IMPORT,
                DriverCall.MEM_POOL_GET_ACCESS,
                DriverCall.EVENT_CREATE,
                DriverCall.IPC_GET_EVENT_HANDLE,
                DriverCall.MEM_POOL_IMPORT_POINTER,
                DriverCall.MEM_GET_ADDRESS_RANGE,
                DriverCall.IPC_OPEN_EVENT_HANDLE,
                DriverCall.EVENT_QUERY,
                DriverCall.MEM_FREE_ASYNC,
                DriverCall.EVENT_RECORD,
                DriverCall.EVENT_SYNCHRONIZE,
                DriverCall.EVENT_DESTROY,
                DriverCall.MEM_POOL_DESTROY);
        return Stream.of(Map.entry(true, ownerCalls), Map.entry(false, guestCalls))
                .flatMap(side -> side.getValue().stream()
                        .flatMap(call -> Stream.of(0, 1, 2).map(after -> new Fault(side.getKey(), call, after))));
    }

    @ParameterizedTest
    @MethodSource("faults")
    void oneFailureLeavesNothingAndTheNextTryWorks(Fault fault) throws Exception {
        shareOnce();
        long files = openFiles();
        SimulatedGpu failing = fault.inOwner ? gpus.owner : gpus.guest;
        failing.faults().failOn(fault.call, fault.after, 1, CudaResult.OUT_OF_MEMORY);
        for (int round = 0; round < ROUNDS; round++) {
            Throwable failure = catchThrowable(this::shareOnce);
            if (failure != null) {
                assertThat(failure).isInstanceOfAny(CudaException.class, SharingException.class);
            }
        }
        failing.faults().clear();
        shareOnce();
        assertThat(gpus.owner.misuses()).isEmpty();
        assertThat(gpus.guest.misuses()).isEmpty();
        assertThat(gpus.path).doesNotExist();
        assertThat(openFiles()).isLessThanOrEqualTo(files);
    }

    /// Serves, publishes, maps, writes, lets go, frees; tries again whatever may be tried again.
    private void shareOnce() {
        try (ExportedPool exported = gpus.serve()) {
            long address = gpus.allocate(exported);
            try {
                share(exported, address);
            } finally {
                gpus.owner.pools().free(0, address, gpus.ownerStream);
                gpus.owner.devices().synchronize(0);
            }
        }
    }

    private void share(ExportedPool exported, long address) {
        ExportedBuffer out = exported.publish("weights", address, TwoGpus.BYTES, gpus.ownerStream);
        try {
            useAndLetGo(out);
        } finally {
            twice(out::close);
        }
    }

    private void useAndLetGo(ExportedBuffer out) {
        ImportedPool imported = gpus.connect();
        try {
            ImportedBuffer in = imported.map("weights", TwoGpus.BYTES, gpus.guestStream);
            try {
                gpus.fill(gpus.guest, in.address(), 1, gpus.guestStream);
                in.record(gpus.guestStream);
                out.await();
            } finally {
                twice(in::close);
            }
        } finally {
            twice(imported::close);
        }
    }

    private static void twice(Runnable closing) {
        try {
            closing.run();
        } catch (CudaException | SharingException again) {
            closing.run();
        }
    }

    private static long openFiles() throws Exception {
        try (var files = Files.list(Path.of("/proc/self/fd"))) {
            return files.filter(file -> !Arrays.asList("0", "1", "2")
                            .contains(file.getFileName().toString()))
                    .count();
        }
    }
}
