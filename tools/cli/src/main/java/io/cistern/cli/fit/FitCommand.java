package io.cistern.cli.fit;

import io.cistern.cli.common.ByteSizeConverter;
import io.cistern.cli.common.Candidates;
import io.cistern.cli.common.ExitCode;
import io.cistern.cli.common.InputException;
import io.cistern.cli.common.OutputFile;
import io.cistern.cli.common.OutputFormat;
import io.cistern.cli.common.ResultWriter;
import io.cistern.cli.common.Version;
import io.cistern.cli.imports.ProgramFile;
import io.cistern.cli.report.ReportPage;
import io.cistern.cli.report.Snapshot;
import io.cistern.cli.trace.Recording;
import java.io.IOException;
import java.io.PrintWriter;
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

/// `cistern fit`: says whether a recorded program would fit.
@Command(
        name = "fit",
        description = "Shows whether a recorded program would fit on a device with another allocator, how small a"
                + " device would suffice, and which code holds the memory. It needs no GPU.",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        sortOptions = false)
public final class FitCommand implements Callable<Integer> {
    private static final long LEAST_CAPACITY = 1 << 20;

    @Spec
    private @Nullable CommandSpec command;

    @Parameters(
            arity = "1..*",
            paramLabel = "FILE",
            description =
                    "A recording, plain, gzipped or zipped: a PyTorch snapshot (torch.cuda.memory._dump_snapshot, with"
                            + " history), an RMM log (logging_resource_adaptor) or a Cistern trace; or the name of a bundled trace."
                            + " With two, it also shows what grew from the first to the second, by call stack.")
    private List<Path> files = List.of();

    @Option(
            names = "--capacity",
            paramLabel = "BYTES",
            converter = ByteSizeConverter.class,
            description = "The memory that allocators may take, such as 24GiB: the device's, less about 0.5 GiB for the"
                    + " CUDA context."
                    + " Default: what the program had when its last request was refused, if the file"
                    + " records it.")
    private @Nullable Long capacity;

    @Option(
            names = "--allocator",
            paramLabel = "SPEC",
            completionCandidates = Candidates.Allocators.class,
            description =
                    "An allocator, NAME or NAME:key=value,...; repeatable. Default: those of caching, async, direct and"
                            + " the plug-ins that can run, and two models of PyTorch's allocators: pytorch-native and"
                            + " pytorch-expandable.")
    private List<String> allocators = new ArrayList<>();

    @Option(names = "--format", paramLabel = "FORMAT", defaultValue = "text", description = OutputFormat.WORDS)
    private OutputFormat format = OutputFormat.TEXT;

    @Option(
            names = "--html",
            paramLabel = "FILE",
            description = "Writes a report as one HTML file: the recorded memory and that of the first allocator, or of"
                    + " those that --allocator names, side by side.")
    private @Nullable Path html;

    @Override
    public Integer call() throws InputException {
        OutputFile.check("--html", html, files);
        if (capacity != null && capacity < LEAST_CAPACITY) {
            throw new InputException(
                    "--capacity " + capacity, "means that many bytes; write " + capacity + "GiB, or MiB");
        }
        PrintWriter out = Objects.requireNonNull(command).commandLine().getOut();
        Fitting fitting =
                Fitting.with(allocators, capacity, command.commandLine().getErr());
        List<Snapshot> pages = new ArrayList<>();
        List<Recording> recordings = new ArrayList<>();
        boolean fits = true;
        try (ResultWriter writer = new ResultWriter(format, out)) {
            for (Path file : files) {
                ProgramFile program = ProgramFile.read(file);
                if (files.size() == 2) {
                    recordings.add(program.recording());
                }
                List<Recording> devices = program.recording().byDevice();
                List<Fit> answers = new ArrayList<>();
                StringBuilder text = new StringBuilder();
                for (Recording device : devices) {
                    Fit fit = fitting.fit(String.valueOf(file.getFileName()), device);
                    answers.add(fit);
                    fits &= fit.fits(fitting.judged());
                    writer.write(fit.fields(file.toString()));
                    text.append(FitText.format(
                            InputException.oneLine(file.toString()), devices.size() > 1, fit, fitting.judged()));
                }
                if (format == OutputFormat.TEXT) {
                    out.print(text);
                    out.flush();
                }
                String grown = recordings.size() == 2 ? writeGrowth(recordings, writer) : "";
                if (html != null) {
                    pages.addAll(fitting.pages(
                            String.valueOf(file.getFileName()),
                            program.snapshot().orElse(null),
                            answers,
                            grown.isEmpty() ? text.toString() : grown + "\n" + text));
                }
                if (format == OutputFormat.TEXT && !grown.isEmpty()) {
                    out.print("\n" + grown);
                    out.flush();
                }
            }
            if (html != null) {
                fitting.err().println("cistern: " + ReportPage.write(pages, html));
            }
        } catch (IOException e) {
            throw OutputFile.unwritable("--html", html, e);
        }
        return fits ? ExitCode.OK : ExitCode.ALLOCATION_FAILED;
    }

    /// Writes what grew from the first file to the second.
    ///
    /// @return the same for people
    private String writeGrowth(List<Recording> recordings, ResultWriter writer) throws IOException {
        Growth growth = Growth.between(recordings.getFirst(), recordings.getLast());
        String first = files.getFirst().toString();
        String second = files.getLast().toString();
        writer.write(growth.fields(first, second));
        return growth.text(InputException.oneLine(first), InputException.oneLine(second));
    }
}
