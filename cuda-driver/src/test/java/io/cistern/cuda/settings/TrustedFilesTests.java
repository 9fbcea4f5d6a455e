package io.cistern.cuda.settings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Whose files are trusted, and how much of them is read.
class TrustedFilesTests {
    private static final int SOMEBODY = 4711;

    @TempDir
    private Path folder;

    private Path directory;
    private Path file;

    @BeforeEach
    void makeFile() throws IOException {
        directory = Files.createDirectory(folder.toRealPath().resolve("etc"));
        file = Files.writeString(directory.resolve("file"), "text");
        mode(directory, "rwxr-xr-x");
        mode(file, "rw-r--r--");
    }

    @Test
    void whatNobodyElseCanChangeIsTrusted() throws IOException {
        assertThat(new TrustedFiles().requireFile(file)).isEqualTo(file);
        assertThatCode(() -> new TrustedFiles().requireDirectory(directory)).doesNotThrowAnyException();
    }

    @ParameterizedTest
    @CsvSource({
        "rw-rw-r--, is writable by its group; chmod g-w it",
        "rw-rw-rw-, is writable by everyone; chmod go-w it",
        "rw-r--rw-, is writable by everyone; chmod go-w it"
    })
    void whatOthersMayWriteIsRefused(String mode, String why) throws IOException {
        mode(file, mode);
        assertRefused(this::require, why);
    }

    @Test
    void directoriesAboveCountUpToTheRoot() throws IOException {
        Path deep = Files.createDirectories(directory.resolve("a/b"));
        Path inner = Files.createFile(deep.resolve("inner"));
        mode(inner, "rw-r--r--");
        mode(deep, "rwxr-xr-x");
        mode(deep.getParent(), "rwxr-xr-x");
        mode(directory, "rwxrwxr-x");

        assertRefused(
                () -> new TrustedFiles().requireFile(inner),
                "lies in " + directory + ", which is writable by its group; chmod g-w it");
    }

    @Test
    void whatWasRefusedStaysRefused() throws IOException {
        mode(directory, "rwxrwxrwx");
        TrustedFiles files = new TrustedFiles();

        for (int again = 0; again < 2; again++) {
            assertThatThrownBy(() -> files.requireFile(file)).isInstanceOf(RefusedFileException.class);
        }
    }

    @Test
    void aStickyDirectoryIsTrustedOnlyAboveOthers() throws IOException {
        Files.setAttribute(directory, "unix:mode", 01777);

        assertThat(new TrustedFiles().requireFile(file)).isEqualTo(file);
        assertRefused(() -> new TrustedFiles().requireDirectory(directory), "is writable by everyone; chmod go-w it");
    }

    @Test
    void aFileOfAnotherUserIsRefused() throws IOException {
        if ((int) Files.getAttribute(file, "unix:uid") == 0) {
            Files.setAttribute(file, "unix:uid", SOMEBODY); // Root may, and root's own would be trusted.
        }

        assertThatThrownBy(() -> new TrustedFiles(SOMEBODY + 1).requireFile(file))
                .isInstanceOf(RefusedFileException.class)
                .hasMessageMatching("belongs to user .+, neither root nor the one who runs this program; chown it.*");
    }

    @Test
    void theFileBehindALinkCounts() throws IOException {
        mode(file, "rw-rw-rw-");
        Path link = Files.createSymbolicLink(folder.resolve("link"), file);

        assertThatThrownBy(() -> new TrustedFiles().requireFile(link)).isInstanceOf(RefusedFileException.class);
    }

    @Test
    void whatIsNoRegularFileIsNotOpened() throws Exception {
        Path fifo = directory.resolve("fifo");
        assertThat(new ProcessBuilder("mkfifo", fifo.toString()).start().waitFor())
                .isZero();

        assertRefused(() -> new TrustedFiles().requireFile(fifo), "is not a regular file");
        assertRefused(() -> new TrustedFiles().requireFile(directory), "is not a regular file");
        assertRefused(
                () -> new TrustedFiles().requireDirectory(file), "is not a directory; name the one that it is" + " in");
    }

    @Test
    void noMoreIsReadThanIsAllowed() throws IOException {
        assertThat(TrustedFiles.read(file, 4)).hasSize(4);
        assertRefused(() -> TrustedFiles.read(file, 3), "is larger than 3");
        try (RandomAccessFile sparse = new RandomAccessFile(file.toFile(), "rw")) {
            sparse.setLength(1L << 40);
        }
        assertRefused(() -> TrustedFiles.read(file, 1 << 20), "is larger than 1MiB");
    }

    private void require() throws IOException {
        new TrustedFiles().requireFile(file);
    }

    private static void mode(Path path, String permissions) throws IOException {
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(permissions));
    }

    private static void assertRefused(ThrowingCallable call, String why) {
        assertThatThrownBy(call).isInstanceOf(RefusedFileException.class).hasMessage(why);
    }
}
