package io.cistern.cli.top;

import io.cistern.cli.common.UsageException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/// The program that is looked at.
interface WatchedProgram extends AutoCloseable {
    /// What people call it.
    String title();

    /// Reads the figures of all of its device memories.
    ///
    /// @throws IOException if it has ended
    List<Reading> read() throws IOException;

    /// The threads that wait now.
    List<WaitingThread> waiting() throws IOException;

    /// Has each device memory write what it looks like to a file.
    ///
    /// @param folder where
    /// @return what was written, for people
    /// @throws UsageException if it can't
    String snapshot(Path folder) throws IOException;

    @Override
    void close();
}
