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

/// Looks at files that decide what a program runs, and reads them in bounded memory. All of one instance share what it
/// knows of directories.
///
/// What is trusted, only root and the user of this process can change, as OpenSSH asks of its own files: the file and
/// every directory above it belong to one of these two, and neither their group nor everybody may write to them.
/// Symbolic links are followed first. Two things are trusted besides:
///
/// - above a file, a directory with the sticky bit, as `/tmp`: only its owner replaces what lies there;
/// - what is mounted read-only: whoever mounted it answers for it.
///
/// Where the file system knows no such rights, everything is trusted. For one thread.
public final class TrustedFiles {
    private static final int STICKY = 01000;
    private static final int GROUP_WRITES = 020;
    private static final int OTHERS_WRITE = 02;
    private static final int ROOT = 0;

    private final int user;
    private final Set<Path> trustedAbove = new HashSet<>();

    /// For this process's user.
    public TrustedFiles() {
        this(ProcessUser.NUMBER);
    }

    /// @param user the number of the user beside root who may change files; [ProcessUser#UNKNOWN]: whoever owns them
    TrustedFiles(int user) {
        this.user = user;
    }

    /// Looks at a file before it is opened: to open a FIFO would wait for somebody who writes to it.
    ///
    /// @return its path without symbolic links, to be opened instead
    /// @throws RefusedFileException if it is no regular file, or others can change it
    /// @throws IOException if it is not there
    public Path requireFile(Path path) throws IOException {
        Path real = path.toRealPath();
        if (!Files.isRegularFile(real)) {
            throw new RefusedFileException("is no regular file");
        }
        requireTrusted(real);
        return real;
    }

    /// Looks at a directory, whose entries others may not add to.
    ///
    /// @throws RefusedFileException if it is no directory, or others can change it
    /// @throws IOException if it is not there
    public void requireDirectory(Path path) throws IOException {
        Path real = path.toRealPath();
        if (!Files.isDirectory(real)) {
            throw new RefusedFileException("is no directory; name the one that it lies in");
        }
        requireTrusted(real);
    }

    /// Reads a file that was looked at.
    ///
    /// @param maxBytes how long it may be
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
        trustedAbove.addAll(passed); // Not before all above them passed too.
    }

    private static void refuse(String problem) throws RefusedFileException {
        if (!problem.isEmpty()) {
            throw new RefusedFileException(problem);
        }
    }

    /// What is wrong with one file or directory alone; nothing, if it is trusted.
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
        return owner == ROOT || owner == user || user == ProcessUser.UNKNOWN
                ? ""
                : "belongs to user " + Files.getOwner(path).getName()
                        + ", neither root nor who runs this program; chown it, or mount it read-only";
    }

    private static String writable(int mode, boolean isAbove) {
        if (isAbove && (mode & STICKY) != 0) {
            return "";
        }
        if ((mode & OTHERS_WRITE) != 0) {
            return "can be written by everybody; chmod go-w it";
        }
        return (mode & GROUP_WRITES) == 0 ? "" : "can be written by its group; chmod g-w it";
    }
}
