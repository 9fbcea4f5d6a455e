package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Bytes come back from a file as they went there, in pieces.
final class SpillFileTests {
    private static final int PIECE = SpillFile.PIECE_BYTES;

    @TempDir
    private Path folder;

    private List<Path> files() throws IOException {
        try (var all = Files.list(folder)) {
            return all.toList();
        }
    }

    private static byte[] random(int byteSize) {
        byte[] bytes = new byte[byteSize];
        new Random(byteSize).nextBytes(bytes);
        return bytes;
    }

    @ParameterizedTest
    @ValueSource(ints = {1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 2 * PIECE + 5})
    void bytesAreWrittenAndReadInPieces(int byteSize) throws IOException {
        byte[] bytes = random(byteSize);
        MemorySegment source = MemorySegment.ofArray(bytes);
        List<Long> written = new ArrayList<>();
        SpillFile file = SpillFile.write(folder, byteSize, (offset, length) -> {
            written.add(offset);
            return source.asSlice(offset, length);
        });
        assertThat(Files.size(file.path())).isEqualTo(byteSize);
        assertThat(written).hasSize((byteSize + PIECE - 1) / PIECE);
        byte[] back = new byte[byteSize];
        List<Long> read = new ArrayList<>();
        file.read(byteSize, (offset, piece) -> {
            read.add(offset);
            MemorySegment.copy(piece, ValueLayout.JAVA_BYTE, 0, back, (int) offset, (int) piece.byteSize());
        });
        assertThat(back).isEqualTo(bytes);
        assertThat(read).isEqualTo(written);
        file.delete();
        assertThat(files()).isEmpty();
        file.delete();
    }

    @Test
    void aFileThatIsTooShortIsTold() throws IOException {
        SpillFile file = SpillFile.write(folder, 100, (_, length) -> MemorySegment.ofArray(random((int) length)));
        assertThatThrownBy(() -> file.read(101, (_, _) -> {}))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("is shorter than the 101 bytes spilled");
        file.read(100, (_, piece) -> assertThat(piece.byteSize()).isEqualTo(100));
    }

    @Test
    void nothingIsLeftOfAFileThatCouldNotBeWritten() throws IOException {
        assertThatThrownBy(() -> SpillFile.write(folder, 2 * PIECE, (offset, length) -> {
                    if (offset > 0) {
                        throw new IOException("broken");
                    }
                    return MemorySegment.ofArray(random((int) length));
                }))
                .hasMessage("broken");
        assertThat(files()).isEmpty();
    }
}
