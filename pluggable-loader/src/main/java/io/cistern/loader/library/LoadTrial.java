package io.cistern.loader.library;

import java.io.IOException;
import java.io.InputStream;
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
/// The C library is named before it, so that its functions come first, as they do for a library that a running program
/// loads: one that calls its own functions `malloc` and `free` would else replace those of the whole process.
///
/// **Threads.** Any.
///
/// @param contents the library
/// @param preload where that process finds it
record LoadTrial(Path contents, String preload) {
    private static final long LONGEST_SECONDS = 20;
    private static final String C_LIBRARY = "libc.so.6";

    /// What the process reads from.
    private static final String STANDARD_INPUT = "/proc/self/fd/0";

    /// Enough for what the dynamic linker says.
    private static final int MAX_SAID = 1 << 16;

    /// A process that a signal ended has this and the signal's number as its status.
    private static final int SIGNALLED = 128;

    /// That of the helper when nobody gave it work.
    private static final int UNUSED_HELPER = 1;

    /// That of the dynamic linker when it can't go on.
    private static final int UNLINKED = 127;

    /// Of a library by its path, since it may look for others beside it.
    static LoadTrial of(Path file) {
        return new LoadTrial(file, file.toString());
    }

    /// Of a copy, whose descriptor only this process has: the other one gets it as its standard input.
    static LoadTrial of(PrivateCopy copy) {
        return new LoadTrial(copy.path(), STANDARD_INPUT);
    }

    /// What goes wrong when the library is loaded, to be said after its path; nothing if it loads, or if it can't
    /// be tried here.
    Optional<String> problem() {
        Path helper = Path.of(System.getProperty("java.home"), "lib", "jspawnhelper");
        if (!Files.isExecutable(helper) || preload.contains(":") || preload.contains(" ")) {
            return Optional.empty(); // Both separate the libraries in LD_PRELOAD.
        }
        try {
            return tried(new ProcessBuilder(helper.toString()));
        } catch (IOException e) {
            return Optional.empty();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return Optional.of("was not loaded: interrupted while it was tried");
        }
    }

    private Optional<String> tried(ProcessBuilder helper) throws IOException, InterruptedException {
        Path said = Files.createTempFile("cistern-trial", ".txt");
        try {
            helper.environment().put("LD_PRELOAD", C_LIBRARY + ":" + preload);
            helper.environment().put("LD_BIND_NOW", "1");
            helper.redirectInput(contents.toFile()).redirectErrorStream(true).redirectOutput(said.toFile());
            Process process = helper.start();
            try {
                return process.waitFor(LONGEST_SECONDS, TimeUnit.SECONDS)
                        ? judged(process.exitValue(), text(said))
                        : Optional.of("does not come back from its constructors: tried for " + LONGEST_SECONDS
                                + " s in a process of its own");
            } finally {
                process.destroyForcibly();
            }
        } finally {
            Files.delete(said);
        }
    }

    private static String text(Path said) throws IOException {
        try (InputStream in = Files.newInputStream(said)) {
            return new String(in.readNBytes(MAX_SAID), StandardCharsets.ISO_8859_1);
        }
    }

    private Optional<String> judged(int status, String said) {
        if (status > SIGNALLED) {
            return Optional.of("crashes when it is loaded: signal " + (status - SIGNALLED)
                    + " in its constructors, in the process that tried it");
        }
        Optional<String> linker = said.lines()
                .filter(line -> line.contains(preload) && (status == UNLINKED || line.startsWith("ERROR: ld.so")))
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
