package io.cistern.cli.imports;

import io.cistern.cli.common.InputException;
import io.cistern.cli.common.InputFile;
import io.cistern.cli.torch.TorchSnapshot;
import io.cistern.cli.trace.BundledTraces;
import io.cistern.cli.trace.Recording;
import io.cistern.cli.trace.TraceReader;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/// Reads a recorded program, whoever recorded it: PyTorch, RMM or Cistern. Its first bytes tell.
public final class ProgramFile {
    private ProgramFile() {}

    /// Reads a recording.
    ///
    /// @param file a file, or the name of a trace that comes with Cistern
    /// @throws InputException if it can't be read or is none of these
    public static Recording read(Path file) throws InputException {
        String name = file.toString();
        if (Files.notExists(file) && BundledTraces.NAMES.contains(name)) {
            return BundledTraces.open(name, (resource, in) -> read(resource, in, RecordingDetails.NONE));
        }
        Path beside = RecordingDetails.beside(file);
        RecordingDetails details = Files.isRegularFile(beside) ? RecordingDetails.read(beside) : RecordingDetails.NONE;
        return InputFile.read(file, (path, in) -> read(path, in, details));
    }

    private static Recording read(String name, InputStream in, RecordingDetails details)
            throws InputException, IOException {
        return TorchSnapshot.isNext(in) || begins(in, RmmLog.HEADER)
                ? ForeignTrace.recording(name, ForeignLog.read(name, in))
                : TraceReader.recording(name, in, details.callStacks(), details.recorder(), details.refusedFreeBytes());
    }

    private static boolean begins(InputStream in, String text) throws IOException {
        in.mark(text.length());
        String next = new String(in.readNBytes(text.length()), StandardCharsets.ISO_8859_1);
        in.reset();
        return next.equals(text);
    }
}
