package io.cistern.suites.races;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.hazards.StreamHazard.Kind;
import io.cistern.suites.WatchedDevice;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Five races of two streams, each also in a correct version, on the driver in the system property
/// `cistern.testkit.driver`. `torch_races.py` of the benchmarks runs the same under the sanitizer of PyTorch; both
/// write a line of JSON for each.
@Tag("races")
@ResourceLock(Resources.SYSTEM_PROPERTIES)
public class PlantedRaces {
    private static final long BYTES = 1 << 20;

    private final WatchedDevice device = new WatchedDevice("caching");
    private final MemoryKernels kernels = MemoryKernels.load(device.driver, 0);
    private final PinnedBuffer host = PinnedMemory.of(device.memory).allocate(BYTES);
    private long a;
    private long b;

    /// For JUnit.
    public PlantedRaces() {}

    enum Race {
        READ_BEFORE_WRITE_ENDED(Kind.RACE),
        WRITE_BEFORE_READ_ENDED(Kind.RACE),
        FREE_BEFORE_USE_ENDED(Kind.FREE_BEFORE_USE_ENDS, Kind.REUSED_TOO_EARLY),
        HOST_READ_BEFORE_COPY_ENDED(Kind.HOST_TOO_EARLY),
        KERNEL_OF_ITS_OWN(Kind.RACE);

        final Kind[] kinds;

        Race(Kind... kinds) {
            this.kinds = kinds;
        }
    }

    @AfterEach
    void close() {
        device.reset();
        host.close();
        kernels.close();
        device.close();
    }

    @ParameterizedTest
    @EnumSource
    void isFoundAndNotInTheCorrectVersion(Race race) {
        List<Kind> ofCorrect = new ArrayList<>();
        List<Kind> ofRacy = new ArrayList<>();
        device.run(() -> {
            ofCorrect.addAll(run(race, true));
            ofRacy.addAll(run(race, false));
        });
        System.out.printf(
                "{\"race\":\"%s\",\"tool\":\"cistern\",\"correct_reported\":%b,\"racy_reported\":%b}%n",
                race.name().toLowerCase(Locale.ROOT), !ofCorrect.isEmpty(), !ofRacy.isEmpty());
        assertThat(ofCorrect).isEmpty();
        assertThat(ofRacy).containsExactly(race.kinds);
    }

    private List<Kind> run(Race race, boolean isCorrect) {
        a = device.heldStream();
        b = device.heldStream();
        long block = device.memory.allocate(BYTES, 0, a);
        long result = device.memory.allocate(BYTES, 0, b);
        switch (race) {
            case READ_BEFORE_WRITE_ENDED -> readBeforeWriteEnded(block, result, isCorrect);
            case WRITE_BEFORE_READ_ENDED -> writeBeforeReadEnded(block, result, isCorrect);
            case FREE_BEFORE_USE_ENDED -> block = freeBeforeUseEnded(block, result, isCorrect);
            case HOST_READ_BEFORE_COPY_ENDED -> hostReadBeforeCopyEnded(block, isCorrect);
            case KERNEL_OF_ITS_OWN -> kernelOfItsOwn(block, isCorrect);
        }
        List<Kind> found =
                device.hazards.list().stream().map(each -> each.kind()).toList();
        device.finish();
        device.memory.free(block, a);
        device.memory.free(result, b);
        device.reset();
        return found;
    }

    private void readBeforeWriteEnded(long block, long result, boolean isCorrect) {
        device.order(a, b);
        fill(block);
        orderIf(isCorrect, a, b);
        read(result, block);
    }

    private void writeBeforeReadEnded(long block, long result, boolean isCorrect) {
        fill(block);
        device.order(a, b);
        read(result, block);
        orderIf(isCorrect, b, a);
        fill(block);
    }

    /// @return the block that is allocated afterwards
    private long freeBeforeUseEnded(long block, long result, boolean isCorrect) {
        fill(block);
        device.order(a, b);
        read(result, block);
        if (isCorrect) {
            device.memory.recordUse(block, b);
        }
        device.memory.free(block, a);
        long next = device.memory.allocate(BYTES, 0, a);
        fill(next);
        return next;
    }

    private void hostReadBeforeCopyEnded(long block, boolean isCorrect) {
        fill(block);
        device.driver.copies().toHost(0, host.segment(), block, BYTES, a);
        if (isCorrect) {
            device.finish();
        }
        device.hazards.touchedByHost(host.segment(), false);
    }

    private void kernelOfItsOwn(long block, boolean isCorrect) {
        device.order(a, b);
        fill(block);
        orderIf(isCorrect, a, b);
        kernels.writeSequence(block, BYTES / Integer.BYTES, 1, b);
    }

    private void orderIf(boolean isCorrect, long first, long second) {
        if (isCorrect) {
            device.order(first, second);
        }
    }

    private void fill(long block) {
        device.driver.copies().fillBytes(0, block, (byte) 1, BYTES, a);
    }

    private void read(long result, long block) {
        device.driver.copies().onDevice(0, result, block, BYTES, b);
    }
}
