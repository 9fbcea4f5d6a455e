package io.cistern.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Ids on their way through files.
class UniqueIdTests {
    @TempDir
    private Path folder;

    private final UniqueId id = UniqueId.of(new byte[UniqueId.BYTES]);

    @Test
    void anIdThatIsWrittenTwiceIsTheOnlyFile() throws IOException {
        id.writeTo(folder.resolve("id"));
        id.writeTo(folder.resolve("id"));
        assertThat(UniqueId.readFrom(folder.resolve("id"))).isEqualTo(id);
        assertThat(folder).isDirectoryContaining("regex:.*/id").isDirectoryNotContaining("regex:.*nccl.*");
    }

    @Test
    void anIdThatCannotBeWrittenLeavesNoFile() throws IOException {
        Path taken =
                Files.createDirectories(folder.resolve("id").resolve("inside")).getParent();
        assertThatThrownBy(() -> id.writeTo(taken)).isInstanceOf(IOException.class);
        assertThat(folder).isDirectoryNotContaining("regex:.*nccl.*");
    }
}
