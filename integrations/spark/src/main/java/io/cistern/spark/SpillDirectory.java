package io.cistern.spark;

import io.cistern.errors.ConfigurationException;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.SparkEnv;

/// Finds the directory for spilled buffers: the executor's local directory with the most room. Spark deletes
/// these directories, even after a kill.
final class SpillDirectory {
    private SpillDirectory() {}

    /// @throws ConfigurationException if there is no local directory, or it can't be written to
    static Path of(SparkEnv env) {
        File roomiest = null;
        for (File each : env.blockManager().diskBlockManager().localDirs()) {
            roomiest = roomiest == null || each.getUsableSpace() > roomiest.getUsableSpace() ? each : roomiest;
        }
        if (roomiest == null) {
            throw new ConfigurationException("Spark has no local directory for spilled buffers: set spark.local.dir");
        }
        try {
            return Files.createDirectories(roomiest.toPath().resolve("cistern"));
        } catch (IOException e) {
            throw new ConfigurationException("spilled buffers can't be written to " + roomiest, e);
        }
    }
}
