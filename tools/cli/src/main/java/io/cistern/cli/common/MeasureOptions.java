package io.cistern.cli.common;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// The options of commands that measure allocators on a device, and the streams that such a command writes to.
public final class MeasureOptions {
    @Spec(Spec.Target.MIXEE)
    private @Nullable CommandSpec command;

    @Option(
            names = "--allocator",
            paramLabel = "SPEC",
            completionCandidates = Candidates.Allocators.class,
            description =
                    "An allocator, NAME or NAME:key=value,...; repeatable. Default: those of caching, async, direct and the"
                            + " plug-ins that can run.")
    private List<String> allocators = new ArrayList<>();

    @Option(
            names = "--device",
            paramLabel = "DEVICE",
            completionCandidates = Candidates.Devices.class,
            defaultValue = "auto",
            description =
                    "auto, simulated or cuda:N. auto: what the setting cistern.driver names, else the GPU if there is"
                            + " one, else a simulated one.")
    private String device = "auto";

    @Option(names = "--format", paramLabel = "FORMAT", defaultValue = "text", description = OutputFormat.WORDS)
    private OutputFormat format = OutputFormat.TEXT;

    /// Returns the specs as given; empty means all that can run.
    public List<String> allocators() {
        return allocators;
    }

    /// Returns those of the measured specs that the exit code is about: the ones that were given. If none were, it
    /// is the first; the others are there to compare.
    public List<String> judged(List<String> measured) {
        return allocators.isEmpty() ? measured.subList(0, 1) : measured;
    }

    public String device() {
        return device;
    }

    public OutputFormat format() {
        return format;
    }

    /// Returns a new writer for results in the chosen format.
    public ResultWriter results() {
        return new ResultWriter(format, out());
    }

    /// Returns the stream for results.
    public PrintWriter out() {
        return Objects.requireNonNull(command).commandLine().getOut();
    }

    /// Prints a line for people that is not a result.
    public void tell(String line) {
        err().println("cistern: " + line);
    }

    /// Returns the stream for everything that is not a result.
    public PrintWriter err() {
        return Objects.requireNonNull(command).commandLine().getErr();
    }
}
