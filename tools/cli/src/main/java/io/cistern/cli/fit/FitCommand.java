package io.cistern.cli.fit;

import io.cistern.cli.common.AllocatorChoice;
import io.cistern.cli.common.ByteSizeConverter;
import io.cistern.cli.common.Candidates;
import io.cistern.cli.common.ExitCode;
import io.cistern.cli.common.InputException;
import io.cistern.cli.common.OutputFormat;
import io.cistern.cli.common.Plugins;
import io.cistern.cli.common.Progress;
import io.cistern.cli.common.ReplayDevice;
import io.cistern.cli.common.ResultWriter;
import io.cistern.cli.common.Version;
import io.cistern.cli.common.Work;
import io.cistern.cli.fit.Fit.Answer;
import io.cistern.cli.imports.ProgramFile;
import io.cistern.cli.trace.Recording;
import io.cistern.spi.catalog.Catalog;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
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
        description = "Says whether a recorded program would fit on a device with another allocator, how small a device"
                + " would do, and which code holds the memory. It needs no GPU.",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        sortOptions = false)
public final class FitCommand implements Callable<Integer> {
    /// Models to compare with. They are no plug-ins, and nobody is told of them elsewhere.
    private static final List<String> MODELS = List.of("pytorch-native", "pytorch-expandable");

    @Spec
    private @Nullable CommandSpec command;

    @Parameters(
            arity = "1..*",
            paramLabel = "FILE",
            description = "What was recorded, gzipped if the name ends in .gz: a snapshot of PyTorch's"
                    + " (torch.cuda.memory._dump_snapshot, with history), a log of RMM's (logging_resource_adaptor), or a"
                    + " trace of Cistern's; or the name of a trace that comes with Cistern.")
    private List<Path> files = List.of();

    @Option(
            names = "--capacity",
            paramLabel = "BYTES",
            converter = ByteSizeConverter.class,
            description = "What allocators may take of the device, as 24GiB: its memory without the CUDA context, some"
                    + " 0.5 GiB. Default: what the program had when its last request was refused, if the file says so.")
    private @Nullable Long capacity;

    @Option(
            names = "--allocator",
            paramLabel = "SPEC",
            completionCandidates = Candidates.Allocators.class,
            description =
                    "An allocator, NAME or NAME:key=value,...; may be given several times. Default: caching, async,"
                            + " direct and plug-ins, as far as they can run, and models of PyTorch's: pytorch-native and"
                            + " pytorch-expandable.")
    private List<String> allocators = new ArrayList<>();

    @Option(names = "--format", paramLabel = "FORMAT", defaultValue = "text", description = OutputFormat.WORDS)
    private OutputFormat format = OutputFormat.TEXT;

    @Override
    public Integer call() throws InputException {
        Catalog catalog = Plugins.catalog();
        ReplayDevice gpu = new ReplayDevice.Simulated(OptionalLong.empty());
        List<String> specs = new ArrayList<>(new AllocatorChoice(gpu, catalog, Work.NONE).specs(allocators));
        List<String> judged = List.copyOf(allocators.isEmpty() ? specs.subList(0, 1) : specs);
        if (allocators.isEmpty()) {
            catalog.entries().stream()
                    .map(Catalog.Entry::name)
                    .filter(MODELS::contains)
                    .sorted(Comparator.comparingInt(MODELS::indexOf))
                    .forEach(specs::add);
        }
        PrintWriter out = Objects.requireNonNull(command).commandLine().getOut();
        boolean fits = true;
        try (ResultWriter writer = new ResultWriter(format, out)) {
            for (Path file : files) {
                List<Recording> devices = ProgramFile.read(file).byDevice();
                for (Recording device : devices) {
                    Fit fit = fit(file, device, specs, catalog);
                    fits &= fit.fits(judged);
                    writer.write(fit.fields(file.toString()));
                    if (format == OutputFormat.TEXT) {
                        out.print(FitText.format(file.toString(), devices.size() > 1, fit, judged));
                        out.flush();
                    }
                }
            }
        }
        return fits ? ExitCode.OK : ExitCode.ALLOCATION_FAILED;
    }

    private Fit fit(Path file, Recording recording, List<String> specs, Catalog catalog) {
        Optional<Room> room =
                capacity == null ? Room.of(recording) : Optional.of(new Room(capacity, "as --capacity says"));
        Holders holders = new Holders(recording);
        List<Answer> answers = new ArrayList<>();
        PrintWriter err = Objects.requireNonNull(command).commandLine().getErr();
        try (Progress progress = new Progress("fit", specs.size(), err)) {
            for (String spec : specs) {
                progress.message(file.getFileName() + " " + spec);
                answers.add(answer(new Player(recording.trace().onOneThread(), spec, catalog), room));
                progress.step();
            }
        }
        return new Fit(recording, room, holders.peak(), holders.servedPeakBytes(), holders.leaks(), answers);
    }

    private static Answer answer(Player player, Optional<Room> room) {
        OptionalLong reserved = player.reservedPeakBytes();
        return new Answer(
                player.spec(),
                reserved,
                room.map(each -> player.failures(each.byteSize())).orElse(List.of()),
                reserved.isPresent() ? player.smallestBytes(reserved.getAsLong()) : OptionalLong.empty());
    }
}
