package io.cistern.release;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Two builds of the same sources, in two folders, publish the same bytes.
class ReproducibleTests {
    static List<StagedArtifact> artifacts() throws IOException {
        return StagedArtifact.all();
    }

    @ParameterizedTest
    @MethodSource("artifacts")
    void twoBuildsAreEqualByteByByte(StagedArtifact artifact) throws Exception {
        for (Path file : artifact.published()) {
            Path again = StagedArtifact.STAGED_AGAIN.resolve(StagedArtifact.STAGED.relativize(file));
            assertThat(again).exists();
            assertThat(Files.mismatch(file, again)).as(file.getFileName().toString()).isEqualTo(-1);
        }
    }
}
