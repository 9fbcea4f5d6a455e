package io.cistern.loader.library;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/// Loads a library in a process of its own first. What a library does when it is loaded can't be undone or
/// survived: a crash there, or an `exit`, would end the JVM.
///
/// The process is the smallest program that every Java has, the helper with which it starts others; the dynamic
/// linker loads the library into it (`LD_PRELOAD`, every symbol bound at once), runs its constructors, and the
/// helper ends at once, since it was not given what it needs. Some milliseconds.
///
/// **Threads.** Any.
final class LoadTrial {
    private static final long LONGEST_SECONDS = 20;

    /// A process that a signal ended has this and the signal's number as its status.
    private static final int SIGNALLED = 128;

    /// That of the helper when nobody gave it work.
    private static final int UNUSED_HELPER = 1;

    /// That of the dynamic linker when it can't go on.
    private static final int UNLINKED = 127;

    private LoadTrial() {}

    /// What goes wrong when the library is loaded, to be said after its path; nothing if it loads, or if it can't
    /// be tried here.
    static Optional<String> problem(Path library) {
        Path helper = Path.of(System.getProperty("java.home"), "lib", "jspawnhelper");
        String path = library.toString();
        if (!Files.isExecutable(helper) || path.contains(":") || path.contains(" ")) {
            return Optional.empty(); // Both separate the libraries in LD_PRELOAD.
        }
        try {
            return tried(new ProcessBuilder(helper.toString()), path);
        } catch (IOException e) {
            return Optional.empty();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return Optional.of("was not loaded: interrupted while it was tried");
        }
    }

    private static Optional<String> tried(ProcessBuilder helper, String path) throws IOException, InterruptedException {
        Path said = Files.createTempFile("cistern-trial", ".txt");
        try {
            helper.environment().put("LD_PRELOAD", path);
            helper.environment().put("LD_BIND_NOW", "1");
            helper.redirectErrorStream(true).redirectOutput(said.toFile());
            Process process = helper.start();
            process.getOutputStream().close();
            if (!process.waitFor(LONGEST_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                return Optional.of("does not come back from its constructors: tried for " + LONGEST_SECONDS
                        + " s in a process of its own");
            }
            return judged(process.exitValue(), Files.readString(said, StandardCharsets.ISO_8859_1), path);
        } finally {
            Files.delete(said);
        }
    }

    private static Optional<String> judged(int status, String said, String path) {
        if (status > SIGNALLED) {
            return Optional.of("crashes when it is loaded: signal " + (status - SIGNALLED)
                    + " in its constructors, in the process that tried it");
        }
        Optional<String> linker = said.lines()
                .filter(line -> line.contains(path) && (status == UNLINKED || line.startsWith("ERROR: ld.so")))
                .map(String::strip)
                .findFirst();
        if (linker.isPresent() || status == UNLINKED) {
            return Optional.of("can't be loaded: " + linker.orElse(said.strip()));
        }
        return status == UNUSED_HELPER
                ? Optional.empty()
                : Optional.of("ends the process that loads it, with status " + status);
    }
}
