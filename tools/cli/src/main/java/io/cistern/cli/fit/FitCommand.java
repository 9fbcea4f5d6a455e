package io.cistern.cli.fit;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.common.Candidates;
import io.cistern.cli.common.ExitCode;
import io.cistern.cli.common.InputException;
import io.cistern.cli.common.OutputFile;
import io.cistern.cli.common.OutputFormat;
import io.cistern.cli.common.ResultWriter;
import io.cistern.cli.common.Subcommand;
import io.cistern.cli.common.TextTable;
import io.cistern.cli.imports.ProgramFile;
import io.cistern.cli.report.ReportPage;
import io.cistern.cli.report.Snapshot;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `cistern fit`: says whether a recorded program would fit.
@Command(
        name = "fit",
        description = "Shows whether a recorded program would fit on a device with another allocator, how small a"
                + " GPU would be enough, and which code holds the memory. It needs no GPU.",
        footer = {
            "",
            "Examples:",
            "  cistern fit oom.pickle",
            "  cistern fit oom.pickle --capacity 23.5GiB --html oom.html",
            "  cistern fit oom.pickle --allocator caching --allocator caching:fit=tight",
            "",
            "Exit codes:",
            "  0   everything fits with caching, or with the allocators named",
            "  2   a file or an option is wrong; the other files are shown",
            "  3   at least one file does not fit on one of its devices, with caching or an",
            "      allocator named with --allocator"
        })
public final class FitCommand extends Subcommand {
    @Parameters(
            arity = "1..*",
            paramLabel = "FILE",
            description =
                    "A recording, plain, gzipped or zipped (/dev/stdin is standard input): a PyTorch snapshot (torch.cuda.memory._dump_snapshot, with"
                            + " history), an RMM log (logging_resource_adaptor) or a Cistern trace; or the name of a bundled trace."
                            + " With exactly two, it first shows what grew from one to the other, by call stack.")
    private List<Path> files = List.of();

    @Option(
            names = "--capacity",
            paramLabel = "BYTES",
            converter = ByteSize.Converter.class,
            description = "The memory that allocators may take on each device, such as 23.5GiB for a device of 24 GiB,"
                    + " since the CUDA context takes about 0.5 GiB."
                    + " Default: what the program could use when its last request was refused, if the"
                    + " file records it.")
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
    public Integer call() {
        OutputFile.check("--html", html, files);
        Fitting fitting = Fitting.with(allocators, capacity, err());
        List<Snapshot> pages = new ArrayList<>();
        List<Optional<ProgramFile>> two = new ArrayList<>();
        boolean fits = true;
        boolean areRead = true;
        try (ResultWriter writer = new ResultWriter(format, out())) {
            String grown = "";
            Map<String, @Nullable Object> fields = Map.of();
            if (files.size() == 2) {
                for (Path file : files) {
                    two.add(read(file));
                }
                if (two.stream().allMatch(Optional::isPresent)) {
                    Growth growth = Growth.between(
                            two.getFirst().orElseThrow().recording(),
                            two.getLast().orElseThrow().recording());
                    fields = growth.fields(
                            files.getFirst().toString(), files.getLast().toString());
                    grown = growth.text(files.getFirst(), files.getLast());
                    print(wrapped(grown) + "\n");
                }
            } else if (files.size() > 2) {
                tell("to see what grew, name exactly two files");
            }
            boolean isFirst = true;
            for (Path file : files) {
                Optional<ProgramFile> read = two.isEmpty() ? read(file) : two.removeFirst();
                if (read.isEmpty()) {
                    areRead = false;
                    continue;
                }
                ProgramFile program = read.get();
                FileFit fitted = fitting.fit(file, program.recording());
                fits &= fitted.fits();
                for (Fit fit : fitted.devices()) {
                    writer.write(fit.fields(file.toString()));
                }
                print((isFirst ? "" : "\n") + fitted.text());
                isFirst = false;
                if (html != null) {
                    pages.addAll(fitting.pages(
                            String.valueOf(file.getFileName()),
                            program.snapshot().orElse(null),
                            fitted));
                }
            }
            if (!fields.isEmpty()) {
                writer.write(fields);
            }
            if (html != null) {
                tell(
                        pages.isEmpty()
                                ? html + " is not written: there is nothing to show"
                                : ReportPage.write(pages, grown, html));
            }
        } catch (IOException e) {
            throw OutputFile.unwritable("--html", html, e);
        }
        return !areRead ? ExitCode.BAD_INPUT : fits ? ExitCode.OK : ExitCode.ALLOCATION_FAILED;
    }

    /// Returns a file's program; if it can't be read, says why and returns empty, so that the others are not held up.
    private Optional<ProgramFile> read(Path file) {
        try {
            ProgramFile read = ProgramFile.read(file);
            read.warning().ifPresent(this::tell);
            return Optional.of(read);
        } catch (InputException e) {
            err().println(e.getMessage());
            return Optional.empty();
        }
    }

    private static String wrapped(String grown) {
        return grown.lines()
                .map(line -> TextTable.wrapped(line, line.startsWith(" ") ? 29 : 2) + "\n")
                .collect(Collectors.joining());
    }

    private void print(String text) {
        if (format == OutputFormat.TEXT) {
            out().print(text);
            out().flush();
        }
    }
}
