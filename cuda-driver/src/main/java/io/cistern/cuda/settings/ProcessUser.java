package io.cistern.cuda.settings;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// The user whose rights this process has. Java knows a name, which a container may lack.
final class ProcessUser {
    /// Where there is no `/proc`.
    static final int UNKNOWN = -1;

    /// The number of the user.
    static final int NUMBER = number();

    private ProcessUser() {}

    /// The line `Uid:` has the real, the effective, the saved number and that for files. `/proc/self` itself belongs to
    /// root where the process may not be traced.
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
