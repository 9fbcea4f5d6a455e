package io.cistern.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cli.common.InputException;
import io.cistern.cli.common.Plugins;
import io.cistern.cli.trace.BundledTraces;
import io.cistern.cli.trace.Trace;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.MemoryStatistics;
import java.util.Arrays;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// The models of PyTorch's allocators reserve and refuse for recorded programs what PyTorch did on an H200, to the
/// byte and the request (docs/measurements/peer-models.txt).
final class TorchModelsOnTracesTests {
    private static final int PASSES = 3;
    private static final long MIB = 1L << 20;

    /// What PyTorch did in all passes together.
    ///
    /// @param reservedPeakBytes the most that it reserved
    /// @param refusals its refused requests
    private record Result(long reservedPeakBytes, int refusals) {}

    @ParameterizedTest
    @CsvSource({
        "gpt2_train, pytorch-native, 20661141504",
        "gpt2_train, pytorch-expandable, 19178455040",
        "resnet_train, pytorch-native, 13434355712",
        "resnet_train, pytorch-expandable, 11255414784",
        "llama_generate, pytorch-native, 1394606080",
        "llama_generate, pytorch-expandable, 908066816",
        "gnn_sample, pytorch-native, 20709376000",
        "gnn_sample, pytorch-expandable, 12197036032",
        "vit_streams, pytorch-native, 3051356160",
        "vit_streams, pytorch-expandable, 2720006144"
    })
    void reserveWhatPyTorchReserves(String trace, String allocator, long reservedPeakBytes) throws InputException {
        try (SimulatedGpu gpu = SimulatedGpu.builder().build()) {
            assertThat(play(BundledTraces.read(trace), allocator, gpu)).isEqualTo(new Result(reservedPeakBytes, 0));
        }
    }

    /// Another program holds all of the device but the room.
    @ParameterizedTest
    @CsvSource({
        "gpt2_train, pytorch-native, 17342, 3, 18182307840",
        "gpt2_train, pytorch-expandable, 17342, 0, 18066964480",
        "resnet_train, pytorch-native, 10846, 1, 11372855296",
        "resnet_train, pytorch-expandable, 10846, 0, 11255414784",
        "llama_generate, pytorch-native, 844, 9, 884998144",
        "llama_generate, pytorch-expandable, 844, 3, 845152256",
        "gnn_sample, pytorch-native, 11420, 10, 11884560384",
        "gnn_sample, pytorch-expandable, 11420, 0, 11924406272",
        "vit_streams, pytorch-native, 1014, 5223, 1063256064",
        "vit_streams, pytorch-expandable, 1014, 4042, 1063256064",
        "gpt2_train, pytorch-native, 17682, 2, 18534629376",
        "llama_generate, pytorch-native, 860, 7, 901775360",
        "gnn_sample, pytorch-native, 11644, 10, 11884560384",
        "vit_streams, pytorch-native, 1034, 4326, 1084227584",
        "vit_streams, pytorch-expandable, 1034, 3568, 1084227584"
    })
    void refuseWhatPyTorchRefuses(String trace, String allocator, long roomMib, int refusals, long reservedPeakBytes)
            throws InputException {
        try (SimulatedGpu gpu = SimulatedGpu.builder().build()) {
            gpu.memory().allocate(0, (gpu.memory().freeBytes(0) / (2 * MIB) * 2 - roomMib) * MIB);

            assertThat(play(BundledTraces.read(trace), allocator, gpu))
                    .isEqualTo(new Result(reservedPeakBytes, refusals));
        }
    }

    private static Result play(Trace trace, String spec, SimulatedGpu gpu) {
        long[] streams = new long[trace.streamCount()];
        Arrays.setAll(streams, _ -> gpu.streams().create(0));
        int refusals = 0;
        try (DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open();
                Allocator allocator = memory.open(spec)) {
            for (int pass = 0; pass < PASSES; pass++) {
                refusals += play(trace, memory, allocator, streams);
            }
            return new Result(
                    allocator
                            .extension(MemoryStatistics.class)
                            .orElseThrow()
                            .reservedPeakBytes(0)
                            .orElseThrow(),
                    refusals);
        }
    }

    /// Plays all rows and frees what is left.
    private static int play(Trace trace, DeviceMemory memory, Allocator allocator, long[] streams) {
        long[] addresses = new long[trace.slotCount()];
        long[] owners = new long[trace.slotCount()];
        int refusals = 0;
        for (int row = 0; row < trace.ops().length; row++) {
            int slot = trace.slots()[row];
            long stream = streams[trace.streams()[row]];
            try {
                if (trace.ops()[row] == Trace.ALLOCATE) {
                    owners[slot] = stream;
                    addresses[slot] = allocator.allocate(trace.byteSizes()[row], 0, stream);
                } else if (trace.ops()[row] == Trace.FREE) {
                    memory.free(addresses[slot], owners[slot]);
                    addresses[slot] = 0;
                }
            } catch (DeviceOutOfMemoryException _) {
                addresses[slot] = 0;
                refusals++;
            }
        }
        for (int slot = 0; slot < addresses.length; slot++) {
            memory.free(addresses[slot], owners[slot]);
        }
        return refusals;
    }
}
