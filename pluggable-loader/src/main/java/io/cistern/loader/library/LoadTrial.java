package io.cistern.loader.library;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/// Loads a library in a separate process first. The effects of loading a library can't be undone: a crash
/// or an `exit` in its constructors would end the JVM.
///
/// The process runs the smallest program in every JDK, the helper with which Java starts processes. The
/// dynamic linker loads the library into it (`LD_PRELOAD`, with all symbols bound at once) and runs its
/// constructors. Then the helper ends at once, since it lacks the input that it needs.
///
/// The C library is named first, so that its functions take precedence, as they do for a library that a running
/// program loads. Otherwise a library that calls its own functions `malloc` and `free` would replace those of
/// the whole process.
///
/// **Threads.** Any.
///
/// @param contents the library
/// @param preload the path at which that process finds it
record LoadTrial(Path contents, String preload) {
    private static final long LONGEST_SECONDS = 20;
    private static final String C_LIBRARY = "libc.so.6";

    private static final String STANDARD_INPUT = "/proc/self/fd/0";

    /// Room for the messages of the dynamic linker.
    private static final int MAX_SAID = 1 << 16;

    /// The exit status of a process that a signal ended is this plus the signal's number.
    private static final int SIGNALLED = 128;

    /// The exit status of the helper if it got no work.
    private static final int UNUSED_HELPER = 1;

    /// The exit status of the dynamic linker if it fails.
    private static final int UNLINKED = 127;

    /// Returns the trial of a library at its path, since the library may look for others beside it.
    static LoadTrial of(Path file) {
        return new LoadTrial(file, file.toString());
    }

    /// Returns the trial of a copy. Only this process has its descriptor, so the trial's process gets it as
    /// standard input.
    static LoadTrial of(PrivateCopy copy) {
        return new LoadTrial(copy.path(), STANDARD_INPUT);
    }

    /// Returns the problem that loading the library causes, worded to follow its path; empty if it loads, or
    /// can't be tried here.
    Optional<String> problem() {
        Path helper = Path.of(System.getProperty("java.home"), "lib", "jspawnhelper");
        if (!Files.isExecutable(helper) || preload.contains(":") || preload.contains(" ")) {
            return Optional.empty(); // `LD_PRELOAD` separates libraries by ":" and " "
        }
        try {
            return tried(new ProcessBuilder(helper.toString()));
        } catch (IOException e) {
            return Optional.empty();
        }
    }

    private Optional<String> tried(ProcessBuilder helper) throws IOException {
        Path said = Files.createTempFile("cistern-trial", ".txt");
        try {
            helper.environment().put("LD_PRELOAD", C_LIBRARY + ":" + preload);
            helper.environment().put("LD_BIND_NOW", "1");
            helper.redirectInput(contents.toFile()).redirectErrorStream(true).redirectOutput(said.toFile());
            Process process = helper.start();
            try {
                return ended(process)
                        ? judged(process.exitValue(), text(said))
                        : Optional.of("does not return from its constructors: tried for " + LONGEST_SECONDS
                                + " s in a separate process");
            } finally {
                process.destroyForcibly();
            }
        } finally {
            Files.delete(said);
        }
    }

    /// An interrupt does not end the wait, which is bounded, and stays pending.
    private static boolean ended(Process process) {
        process.onExit()
                .completeOnTimeout(process, LONGEST_SECONDS, TimeUnit.SECONDS)
                .join();
        return !process.isAlive();
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
