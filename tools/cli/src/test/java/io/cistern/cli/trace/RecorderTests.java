package io.cistern.cli.trace;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RecorderTests {
    private static final long MIB = 1L << 20;

    @ParameterizedTest(name = "PyTorch asks for {1} MiB to serve {0} bytes")
    @CsvSource({"512, 2", "1048576, 2", "1048577, 20", "10485759, 20", "10485760, 10", "10485761, 12"})
    void pyTorchObtainsWholeSegments(long byteSize, long mib) {
        assertThat(Recorder.named("PyTorch").driverBytes(byteSize)).isEqualTo(mib * MIB);
        assertThat(Recorder.named("RMM").driverBytes(byteSize)).isEqualTo(byteSize);
    }
}
