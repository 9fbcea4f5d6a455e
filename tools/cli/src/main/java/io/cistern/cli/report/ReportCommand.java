package io.cistern.cli.report;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.common.ExitCode;
import io.cistern.cli.common.InputException;
import io.cistern.cli.common.OutputFile;
import io.cistern.cli.common.Version;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `cistern report`: makes a web page for people from snapshots.
@Command(
        name = "report",
        description = "Makes one HTML file from snapshots of a program's device memory: what stands out, memory over"
                + " time, a map of the segments, and which code holds what. It needs no network.",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        sortOptions = false)
public final class ReportCommand implements Callable<Integer> {
    @Spec
    private @Nullable CommandSpec command;

    @Parameters(
            arity = "1..*",
            paramLabel = "SNAPSHOT",
            description = "Snapshots, in JSON or pickled by PyTorch or Cistern, gzipped if their names end in .gz."
                    + " Several are compared, the first with the others.")
    private List<Path> files = List.of();

    @Option(
            names = {"-o", "--output"},
            paramLabel = "FILE",
            description = "Where the page goes; default: ${DEFAULT-VALUE}.")
    private Path output = Path.of("report.html");

    @Override
    public Integer call() throws InputException {
        OutputFile.check("--output", output, files);
        List<Snapshot> snapshots = new ArrayList<>();
        for (Path file : files) {
            snapshots.add(Snapshot.read(file));
        }
        try {
            write(snapshots);
            Objects.requireNonNull(command)
                    .commandLine()
                    .getErr()
                    .printf("cistern: %s, %s%n", output, ByteSize.format(Files.size(output)));
        } catch (IOException e) {
            throw OutputFile.unwritable("--output", output, e);
        }
        return ExitCode.OK;
    }

    private void write(List<Snapshot> snapshots) throws IOException {
        try (Writer out = ReportPage.open(output)) {
            ReportPage.write(snapshots, out);
        }
    }
}
