package io.cistern.cuda.settings;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/// Checks files that decide what a program runs, and reads them in bounded memory. One instance checks a
/// trusted directory only once.
///
/// A file is trusted if only root and the user of this process can change it. This is the rule of OpenSSH for
/// its own files: the file and every directory above it belong to one of these two users, and neither their
/// group nor others may write to them. Symbolic links are followed first. Two more cases are trusted:
///
/// - a directory above the file with the sticky bit, such as `/tmp`: only the owner of an entry can replace it;
/// - a read-only mount: the user who mounted it is responsible for it.
///
/// If the file system has no such rights, everything is trusted. Not thread-safe.
public final class TrustedFiles {
    private static final int STICKY = 01000;
    private static final int GROUP_WRITES = 020;
    private static final int OTHERS_WRITE = 02;
    private static final int ROOT = 0;

    /// The user ID if there is no `/proc`.
    private static final int UNKNOWN = -1;

    /// The user ID whose rights this process has. Java only knows a name, which a container may lack.
    private static final int OWN_USER = ownUser();

    private final int user;
    private final Set<Path> trustedAbove = new HashSet<>();

    /// Trusts files of this process's user.
    public TrustedFiles() {
        this(OWN_USER);
    }

    /// @param user the user besides root who may change files; -1 accepts any owner
    TrustedFiles(int user) {
        this.user = user;
    }

    /// Checks a file before it is opened, since opening a FIFO would wait for a writer.
    ///
    /// @return its path without symbolic links, to be opened instead
    /// @throws RefusedFileException if it is not a regular file, or others can change it
    /// @throws IOException if it does not exist
    public Path requireFile(Path path) throws IOException {
        Path real = path.toRealPath();
        if (!Files.isRegularFile(real)) {
            throw new RefusedFileException("is not a regular file");
        }
        requireTrusted(real);
        return real;
    }

    /// Checks a directory to which others must not add entries.
    ///
    /// @throws RefusedFileException if it is not a directory, or others can change it
    /// @throws IOException if it does not exist
    public void requireDirectory(Path path) throws IOException {
        Path real = path.toRealPath();
        if (!Files.isDirectory(real)) {
            throw new RefusedFileException("is not a directory; name the one that it is in");
        }
        requireTrusted(real);
    }

    /// Reads a file that was checked.
    ///
    /// @param maxBytes the longest allowed length
    /// @throws RefusedFileException if it is longer
    public static byte[] read(Path file, int maxBytes) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            if (Files.size(file) <= maxBytes) {
                byte[] bytes = in.readNBytes(maxBytes);
                if (in.read() < 0) {
                    return bytes;
                }
            }
        }
        throw new RefusedFileException("is larger than " + ByteSizes.print(maxBytes));
    }

    private void requireTrusted(Path real) throws IOException {
        refuse(problem(real, false));
        List<Path> passed = new ArrayList<>();
        for (Path above = real.getParent(); above != null && !trustedAbove.contains(above); above = above.getParent()) {
            String problem = problem(above, true);
            refuse(problem.isEmpty() ? "" : "lies in " + above + ", which " + problem);
            passed.add(above);
        }
        trustedAbove.addAll(passed); // only after all directories above them passed too
    }

    private static void refuse(String problem) throws RefusedFileException {
        if (!problem.isEmpty()) {
            throw new RefusedFileException(problem);
        }
    }

    /// Returns what is wrong with one file or directory alone; empty if it is trusted.
    private String problem(Path path, boolean isAbove) throws IOException {
        Map<String, Object> rights;
        try {
            rights = Files.readAttributes(path, "unix:mode,uid");
        } catch (UnsupportedOperationException | IllegalArgumentException noSuchRights) {
            return "";
        }
        String problem = owned(number(rights, "uid"), path);
        if (problem.isEmpty()) {
            problem = writable(number(rights, "mode"), isAbove);
        }
        return !problem.isEmpty() && isOnReadOnlyMount(path) ? "" : problem;
    }

    private static int number(Map<String, Object> rights, String name) {
        return (Integer) Objects.requireNonNull(rights.get(name));
    }

    private static boolean isOnReadOnlyMount(Path path) {
        try {
            return Files.getFileStore(path).isReadOnly();
        } catch (IOException unknownMount) {
            return false;
        }
    }

    private String owned(int owner, Path path) throws IOException {
        return owner == ROOT || owner == user || user == UNKNOWN
                ? ""
                : "belongs to user " + Files.getOwner(path).getName()
                        + ", neither root nor the one who runs this program; chown it, or mount it read-only";
    }

    private static String writable(int mode, boolean isAbove) {
        if (isAbove && (mode & STICKY) != 0) {
            return "";
        }
        if ((mode & OTHERS_WRITE) != 0) {
            return "is writable by everyone; chmod go-w it";
        }
        return (mode & GROUP_WRITES) == 0 ? "" : "is writable by its group; chmod g-w it";
    }

    /// The line `Uid:` has the real, the effective, the saved and the file-system user. The owner of
    /// `/proc/self` does not help: it is root if the process may not be traced.
    private static int ownUser() {
        try {
            for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
                if (line.startsWith("Uid:")) {
                    return Integer.parseInt(line.split("\t", -1)[4]);
                }
            }
        } catch (IOException | RuntimeException noProc) {
            return UNKNOWN;
        }
        return UNKNOWN;
    }
}
