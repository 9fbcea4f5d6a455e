package io.cistern.cuda.settings;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// Finds the user whose rights this process has. Java only knows a name, which a container may lack.
final class ProcessUser {
    /// The number if there is no `/proc`.
    static final int UNKNOWN = -1;

    /// The number of the user.
    static final int NUMBER = number();

    private ProcessUser() {}

    /// The line `Uid:` has the real, the effective, the saved and the file-system user. The owner of
    /// `/proc/self` does not help: it is root if the process may not be traced.
    private static int number() {
        try {
            List<String> lines = Files.readAllLines(Path.of("/proc/self/status"));
            for (String line : lines) {
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
