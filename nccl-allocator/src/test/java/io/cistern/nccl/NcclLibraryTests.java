package io.cistern.nccl;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Which libraries can be used, and what is said of those that can't.
class NcclLibraryTests {
    @TempDir
    private Path folder;

    @Test
    void aLibraryIsFoundByItsFileAndByItsFolder() {
        FakeNccl fake = new FakeNccl(folder);
        assertThat(fake.library().version()).isEqualTo(22803);
        assertThat(NcclLibrary.find(folder.toString()).library().orElseThrow().name())
                .isEqualTo(fake.path().toString());
    }

    @Test
    void thePropertyNamesIt() {
        System.setProperty(NcclLibrary.PROPERTY, new FakeNccl(folder).path().toString());
        try {
            assertThat(NcclLibrary.find().library()).isPresent();
        } finally {
            System.clearProperty(NcclLibrary.PROPERTY);
        }
    }

    @Test
    void noLibraryIsAReasonWithWhatToDo() {
        assertThat(NcclLibrary.find("libnccl-that-nobody-has.so.2").reason())
                .contains("libnccl-that-nobody-has.so.2", "install NCCL", NcclLibrary.PROPERTY);
    }

    @Test
    void aFileThatIsNoLibraryIsAReason() throws IOException {
        Path text = Files.writeString(folder.resolve("text.so"), "no library");
        assertThat(NcclLibrary.find(text.toString()).reason()).contains("text.so", "can't be loaded");
    }

    @Test
    void anOldLibraryIsAReasonThatNamesBothVersions() {
        FakeNccl fake = new FakeNccl(folder, "-DVERSION=21805");
        assertThat(NcclLibrary.find(fake.path().toString()).reason()).contains("2.18.5", "2.19.1", "update NCCL");
    }

    @Test
    void aLibraryWithoutWhatEveryVersionHasIsAReason() {
        FakeNccl fake = new FakeNccl(folder, "-DncclMemAlloc=renamed");
        assertThat(NcclLibrary.find(fake.path().toString()).reason()).contains("has no symbol ncclMemAlloc");
    }

    @Test
    void versionsAreForPeople() {
        assertThat(NcclLibrary.text(22803)).isEqualTo("2.28.3");
        assertThat(NcclLibrary.text(2804)).isEqualTo("2.8.4");
    }
}
