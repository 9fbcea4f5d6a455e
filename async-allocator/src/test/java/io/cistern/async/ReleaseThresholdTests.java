package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.errors.ConfigurationException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// What the option `release_threshold` can say.
final class ReleaseThresholdTests implements AllocatorProvider {
    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(1000).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(this), List.of()))
            .open();
    private @Nullable ReleaseThreshold read;

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return "async";
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        AsyncOptions options = AsyncOptions.read(context.options(), Long.MAX_VALUE);
        read = options.threshold().orElseThrow();
        return AsyncFixture.async(gpu, 1, options, context.streams());
    }

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    private ReleaseThreshold read(String spec) {
        memory.open(spec).close();
        return Objects.requireNonNull(read);
    }

    @ParameterizedTest
    @CsvSource({
        "zero, 0",
        "0, 0",
        "keep_all, 9223372036854775807",
        "2GiB, 2147483648",
        "0.5KiB, 512",
        "12345, 12345",
        "0.3, 300",
        ".25, 250",
        "30%, 300",
        "2g, 2147483648",
        "1.0, 1000"
    })
    void fixedOnesAreNumbersOfBytesOrAShareOfTheDevice(String text, long bytes) {
        assertThat(read("async:release_threshold=" + text).initialBytes(gpu, 0)).isEqualTo(bytes);
    }

    @Test
    void adaptiveKeepsAllUntilItKnows() {
        ReleaseThreshold adaptive = read("async:release_threshold=adaptive");
        assertThat(adaptive).isInstanceOf(ReleaseThreshold.Adaptive.class);
        assertThat(adaptive.initialBytes(gpu, 0)).isEqualTo(Long.MAX_VALUE);
    }

    @Test
    void allIsKeptIfNothingIsSaid() {
        assertThat(read("async")).isEqualTo(ReleaseThreshold.keepAll());
    }

    @ParameterizedTest
    @CsvSource({
        "adaptve, 'nearest first: adaptive'",
        "1.5, 'fraction from 0 to 1'",
        "-0.1, 'not a number of bytes'",
        "-1, 'not a number of bytes'",
        "2GB, 'powers of 1000 or of 1024'"
    })
    void anythingElseIsRefusedWithWhatIsLegal(String text, String reason) {
        assertThatThrownBy(() -> memory.open("async:release_threshold=" + text))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("release_threshold")
                .hasMessageContaining(reason)
                .hasMessageEndingWith(
                        "; valid: " + AsyncOption.RELEASE_THRESHOLD.legal().replace("`", ""));
    }

    @Test
    void adaptiveWatchesPoolsOfItsOwn() {
        assertThatThrownBy(() -> memory.open("async:release_threshold=adaptive,pool=default"))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("contradicts pool=default");
        assertThat(memory.open("async:release_threshold=adaptive,per_stream=true"))
                .isNotNull();
        assertThat(memory.open("async:release_threshold=adaptive,small_pool=1MiB"))
                .isNotNull();
    }
}
