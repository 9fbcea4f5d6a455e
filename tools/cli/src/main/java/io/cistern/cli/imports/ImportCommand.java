package io.cistern.cli.imports;

import io.cistern.cli.common.ExitCode;
import io.cistern.cli.common.InputException;
import io.cistern.cli.common.InputFile;
import io.cistern.cli.common.OutputFile;
import io.cistern.cli.common.Subcommand;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.zip.GZIPOutputStream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `cistern import`: makes a trace from a log of another allocator.
@Command(
        name = "import",
        description =
                "Makes an allocation trace from a PyTorch snapshot (torch.cuda.memory._dump_snapshot, with history) or"
                        + " an RMM log (logging_resource_adaptor).",
        footer = {
            "",
            "Examples:",
            "  cistern import snapshot.pickle -o my.csv && cistern replay my.csv",
            "  cistern import rmm_log.csv -o my.csv.gz"
        })
public final class ImportCommand extends Subcommand {
    private static final String GZIP = ".gz";

    @Parameters(
            paramLabel = "FILE",
            description = "The snapshot or log, plain, gzipped or zipped; its first bytes show which it is.")
    private Path file = Path.of("");

    @Option(
            names = {"-o", "--output"},
            paramLabel = "FILE",
            description =
                    "Where the trace goes, gzipped if the name ends in .gz; default: standard output. Call stacks and"
                            + " other details of the recording go into a second file: FILE.details.json for"
                            + " FILE.csv.")
    private @Nullable Path output;

    @Override
    public Integer call() throws InputException {
        OutputFile.check("--output", output, List.of(file));
        OutputFile.check("--output", output == null ? null : RecordingDetails.beside(output), List.of(file));
        ForeignLog log = InputFile.read(file, ForeignLog::read);
        if (log.warning() != null) {
            tell(log.warning());
        }
        ForeignTrace.Summary summary = write(log);
        err().printf(
                        Locale.ROOT,
                        "cistern: %,d blocks, %,d of them alive before the recording began; streams: %d, devices: %d,"
                                + " refused requests: %,d, peak bytes: %,d%n",
                        summary.blocks(),
                        summary.aliveBefore(),
                        summary.streams(),
                        summary.devices(),
                        summary.refused(),
                        summary.peakBytes());
        return ExitCode.OK;
    }

    private ForeignTrace.Summary write(ForeignLog log) throws InputException {
        try {
            ForeignTrace.write(file.toString(), log, false, Writer.nullWriter()); // A refused log leaves no file.
            if (output != null) {
                return write(log, output);
            }
            ForeignTrace.Summary summary = ForeignTrace.write(file.toString(), log, false, out());
            out().flush();
            return summary;
        } catch (IOException e) {
            throw OutputFile.unwritable("--output", output, e);
        }
    }

    private ForeignTrace.Summary write(ForeignLog log, Path to) throws InputException, IOException {
        boolean detailed = RecordingDetails.has(log);
        if (!detailed) {
            Files.deleteIfExists(RecordingDetails.beside(to)); // Those of an earlier import are not of this trace.
        }
        ForeignTrace.Summary summary = writeRows(log, detailed, to);
        if (detailed) {
            RecordingDetails.write(log, summary.aliveBefore(), RecordingDetails.beside(to));
        }
        return summary;
    }

    private ForeignTrace.Summary writeRows(ForeignLog log, boolean stacks, Path to) throws InputException, IOException {
        try (OutputStream bytes = Files.newOutputStream(to);
                OutputStream packed = to.toString().endsWith(GZIP) ? new GZIPOutputStream(bytes) : bytes;
                Writer out = new BufferedWriter(new OutputStreamWriter(packed, StandardCharsets.US_ASCII))) {
            return ForeignTrace.write(file.toString(), log, stacks, out);
        }
    }
}
