package io.cistern.cli.imports;

import io.cistern.cli.common.Content;
import io.cistern.cli.common.InputException;
import io.cistern.cli.common.InputFile;
import io.cistern.cli.torch.TorchSnapshot;
import io.cistern.cli.trace.BundledTraces;
import io.cistern.cli.trace.Recording;
import io.cistern.cli.trace.TraceReader;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/// A recorded program, whoever recorded it: PyTorch, RMM or Cistern.
///
/// @param snapshot the PyTorch snapshot that it was read from; empty for any other file
/// @param warning what was left out of the file, for people; empty if nothing was
public record ProgramFile(Recording recording, Optional<TorchSnapshot> snapshot, Optional<String> warning) {
    /// Reads a recording. Its first bytes tell what it is.
    ///
    /// @param file a file, or the name of a trace that comes with Cistern
    /// @throws InputException if it can't be read or is none of these
    public static ProgramFile read(Path file) throws InputException {
        String name = file.toString();
        if (Files.notExists(file) && BundledTraces.NAMES.contains(name)) {
            return BundledTraces.open(name, (resource, in) -> read(resource, in, RecordingDetails.NONE));
        }
        Path beside = RecordingDetails.beside(file);
        RecordingDetails details = Files.isRegularFile(beside) ? RecordingDetails.read(beside) : RecordingDetails.NONE;
        return InputFile.read(file, (path, in) -> read(path, in, details));
    }

    private static ProgramFile read(String name, InputStream in, RecordingDetails details)
            throws InputException, IOException {
        return switch (Content.of(in)) {
            case PICKLE -> of(name, TorchSnapshot.read(name, in));
            case RMM_LOG -> of(name, RmmLog.read(name, in), Optional.empty());
            case TRACE ->
                new ProgramFile(
                        TraceReader.recording(name, in, details.callStacks(), details.recorder()),
                        Optional.empty(),
                        Optional.empty());
            case Content other -> throw other.error(name, "a PyTorch snapshot, an RMM log or a Cistern trace");
        };
    }

    /// Returns the program of a snapshot.
    ///
    /// @param file its name
    /// @throws InputException if it has no history, or no replay would read its trace
    public static ProgramFile of(String file, TorchSnapshot snapshot) throws InputException, IOException {
        return of(file, TorchLog.of(file, snapshot), Optional.of(snapshot));
    }

    private static ProgramFile of(String file, ForeignLog log, Optional<TorchSnapshot> snapshot)
            throws InputException, IOException {
        return new ProgramFile(ForeignTrace.recording(file, log), snapshot, Optional.ofNullable(log.warning()));
    }
}
