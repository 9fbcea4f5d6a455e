package io.cistern.cli.top;

import io.cistern.cli.common.UsageException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/// A program that `cistern top` watches.
interface WatchedProgram extends AutoCloseable {
    String title();

    /// Reads the figures of all its device memories.
    ///
    /// @throws IOException if the program has ended
    List<Reading> read() throws IOException;

    List<WaitingThread> waiting() throws IOException;

    /// Makes each device memory write a snapshot to a file.
    ///
    /// @return a message that names the files, for people
    /// @throws UsageException if the program can't write them
    String snapshot(Path folder) throws IOException;

    @Override
    void close();
}
