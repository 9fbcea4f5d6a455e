package io.cistern.cli.fit;

import io.cistern.cli.common.Content;
import io.cistern.cli.common.ExitCode;
import io.cistern.cli.common.InputException;
import io.cistern.cli.common.InputFile;
import io.cistern.cli.common.OutputFile;
import io.cistern.cli.common.Subcommand;
import io.cistern.cli.imports.ProgramFile;
import io.cistern.cli.report.ReportPage;
import io.cistern.cli.report.ShownFit;
import io.cistern.cli.report.Snapshot;
import io.cistern.cli.torch.TorchSnapshot;
import io.cistern.cli.trace.Recording;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `cistern report`: makes a web page for people from snapshots.
@Command(
        name = "report",
        description =
                "Turns snapshots of a program's device memory into one HTML file: findings, memory over time, a map"
                        + " of the segments, and which code holds what. For a PyTorch snapshot with history, it also shows how"
                        + " the program would fit with Cistern, as fit does.",
        footer = {
            "",
            "Examples:",
            "  cistern report snapshot.json -o report.html",
            "  cistern report before.json after.json -o report.html      side by side"
        })
public final class ReportCommand extends Subcommand {
    @Parameters(
            arity = "1..*",
            paramLabel = "SNAPSHOT",
            description =
                    "Snapshots: PyTorch's pickles, Cistern's JSON or pickles; plain, gzipped or zipped. If there are several,"
                            + " the others are compared with the first. For exactly two PyTorch snapshots with history, the"
                            + " report also shows what grew.")
    private List<Path> files = List.of();

    @Option(
            names = {"-o", "--output"},
            paramLabel = "FILE",
            description = "The file to write; default: ${DEFAULT-VALUE}.")
    private Path output = Path.of("report.html");

    @Override
    public Integer call() throws InputException {
        OutputFile.check("--output", output, files);
        List<Snapshot> snapshots = new ArrayList<>();
        List<Recording> recordings = new ArrayList<>();
        try {
            for (Path file : files) {
                snapshots.addAll(read(file, recordings));
            }
            String grown = files.size() == 2 && recordings.size() == 2
                    ? Growth.between(recordings.getFirst(), recordings.getLast())
                            .text(files.getFirst(), files.getLast())
                    : "";
            tell(ReportPage.write(snapshots, grown, output));
        } catch (IOException e) {
            throw OutputFile.unwritable("--output", output, e);
        }
        return ExitCode.OK;
    }

    /// @param recordings where the file's program goes if it has a history
    private List<Snapshot> read(Path file, List<Recording> recordings) throws InputException, IOException {
        String shortName = String.valueOf(file.getFileName());
        Object read = InputFile.read(file, (name, in) -> switch (Content.of(in)) {
            case PICKLE -> TorchSnapshot.read(name, in);
            case JSON -> Snapshot.read(name, shortName, in);
            case Content other -> throw other.error(name, "a snapshot");
        });
        if (!(read instanceof TorchSnapshot snapshot)) {
            return List.of((Snapshot) read);
        }
        if (snapshot.eventCount() == 0) {
            return List.of(Snapshot.of(
                    shortName, snapshot, "A snapshot that " + snapshot.recorder() + " took", ShownFit.NONE));
        }
        Recording program = ProgramFile.of(file.toString(), snapshot).recording();
        if (files.size() == 2) {
            recordings.add(program);
        }
        Fitting fitting = Fitting.with(List.of(), null, err());
        return fitting.pages(shortName, snapshot, fitting.fit(file, program));
    }
}
