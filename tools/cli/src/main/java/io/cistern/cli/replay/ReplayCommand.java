package io.cistern.cli.replay;

import io.cistern.cli.common.AllocatorChoice;
import io.cistern.cli.common.Candidates;
import io.cistern.cli.common.ExitCode;
import io.cistern.cli.common.InputException;
import io.cistern.cli.common.OutputFile;
import io.cistern.cli.common.OutputFormat;
import io.cistern.cli.common.Plugins;
import io.cistern.cli.common.Progress;
import io.cistern.cli.common.ReplayDevice;
import io.cistern.cli.common.ResultWriter;
import io.cistern.cli.common.Subcommand;
import io.cistern.cli.common.UsageException;
import io.cistern.cli.common.Work;
import io.cistern.cli.trace.BundledTraces;
import io.cistern.cli.trace.Trace;
import io.cistern.cli.trace.TraceReader;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.names.NearestName;
import io.cistern.spi.catalog.Catalog;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `cistern replay`: replays real allocation traces through allocators and reports their cost.
@Command(
        name = "replay",
        description =
                "Replays allocation traces through allocators and reports how fast they were, how much memory they"
                        + " reserved, and how often they called the driver. It leaves out requests that were refused during"
                        + " recording; cistern fit makes them again.",
        footer = {
            "",
            "Examples:",
            "  cistern replay                        the traces that come with Cistern",
            "  cistern replay my.csv --allocator caching --allocator async",
            "  cistern replay --work memset gpt2_train        with work on each block",
            "  cistern replay my.csv --capacity 1.02x         on a device that is nearly full"
        })
public final class ReplayCommand extends Subcommand {
    /// Enough for the JVM to compile the allocator's paths, which differ from trace to trace.
    private static final long WARM_UP_NANOS = 700_000_000;
    private static final int WARM_UP_MAX_SESSIONS = 100;

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

    @Parameters(
            paramLabel = "FILE",
            completionCandidates = BundledTraces.Candidates.class,
            description = "Traces, .csv or .csv.gz, or names of those that come with Cistern: gpt2_train,"
                    + " resnet_train, llama_generate, gnn_sample, vit_streams (default: these five).")
    private List<Path> files = new ArrayList<>();

    @Option(
            names = "--capacity",
            paramLabel = "BYTES",
            converter = Capacity.Converter.class,
            description =
                    "Memory of the device (default: all of it, or an H200's if it is simulated): for example 8GiB, or 1.02x"
                            + " for that multiple of each trace's peak. On a real one, the rest is occupied.")
    private @Nullable Capacity capacity;

    @Option(
            names = "--work",
            paramLabel = "WORK",
            defaultValue = "none",
            description =
                    "none, memset (each block is written once) or check (contents are verified; nothing is timed).")
    private Work work = Work.NONE;

    @Option(
            names = "--repeat",
            paramLabel = "N",
            defaultValue = "3",
            description = "Passes over each trace, the first included; default ${DEFAULT-VALUE}.")
    private int repeat = 3;

    @Option(
            names = "--swap-every",
            paramLabel = "N",
            description =
                    "Replaces the allocator with a new one of the same spec every N operations; old blocks go back to"
                            + " the old one, which drains.")
    private @Nullable Integer swapEvery;

    @Option(
            names = "--scopes",
            description =
                    "Gives each stream of a trace a pool of its own, of the same spec, entered and left around each run"
                            + " of its rows; with --swap-every, pools are replaced.")
    private boolean scopes;

    @Option(
            names = "--layer",
            paramLabel = "LAYER",
            split = ",",
            description = "raw (blocks are addresses; the default), buffer (blocks are DeviceBuffers), or raw,buffer to"
                    + " see what the objects cost.")
    private List<Layer> layers = List.of(Layer.RAW);

    @Option(
            names = "--threads",
            description =
                    "Plays each thread of a trace on its own thread. Rows keep their order where they share a block, a wait"
                            + " or the end of a stream. Not with --swap-every or --scopes.")
    private boolean threads;

    @Option(
            names = "--ahead",
            paramLabel = "ROWS",
            description = "With --threads: how many rows a thread may be ahead of the slowest one; default "
                    + Routing.Plan.USUAL_AHEAD + ", 0 for the order of the trace.")
    private @Nullable Integer ahead;

    @Option(
            names = "--devices",
            description =
                    "Plays each device of a trace on its own device, from --device on. If there are fewer devices, all are"
                            + " played on one, as without this option.")
    private boolean devices;

    @Option(
            names = "--series",
            paramLabel = "FILE",
            description = "Writes the bytes requested and reserved over the first pass to this file, as CSV.")
    private @Nullable Path series;

    @Option(
            names = "--snapshot",
            paramLabel = "FILE",
            description =
                    "Writes a snapshot of the first pass at its peak: a pickle for PyTorch if the name ends in .pickle, else"
                            + " JSON; one file for each trace and allocator.")
    private @Nullable Path snapshot;

    @Option(
            names = "--html",
            paramLabel = "FILE",
            description = "Writes a report of those snapshots, side by side, as one HTML file.")
    private @Nullable Path html;

    /// The layers and specs that are warm: if passes are timed singly, one warm-up per allocator is enough.
    private final Set<String> warm = new HashSet<>();
    private @Nullable String firstFailure;

    private final Set<String> failed = new HashSet<>();

    @Override
    public Integer call() throws InputException {
        if (repeat < 1 || repeat > 1_000_000) {
            throw new UsageException("--repeat must be 1 to 1000000, not " + repeat);
        }
        if (swapEvery != null && swapEvery < 1) {
            throw new UsageException("--swap-every must be at least 1, not " + swapEvery);
        }
        if (threads && (scopes || swapEvery != null)) {
            throw new UsageException("--threads can't be used with --swap-every or --scopes");
        }
        if (ahead != null && (!threads || ahead < 0)) {
            throw new UsageException("--ahead must be at least 0 and needs --threads");
        }
        OutputFile.check("--series", series, files);
        OutputFile.check("--snapshot", snapshot, files);
        OutputFile.check("--html", html, files);
        OutputFile.checkApart("--series", series, "--snapshot", snapshot);
        OutputFile.checkApart("--series", series, "--html", html);
        OutputFile.checkApart("--snapshot", snapshot, "--html", html);
        List<Trace> traces = readTraces();
        try (ReplayDevice gpu = ReplayDevice.open(
                device,
                capacity == null || capacity.isOfEachTrace()
                        ? OptionalLong.empty()
                        : OptionalLong.of(capacity.bytes()))) {
            Catalog catalog = Plugins.catalog();
            List<String> specs = new AllocatorChoice(gpu, catalog, work).specs(allocators);
            AllocatorChoice.leftOut(catalog, allocators).ifPresent(this::tell);
            List<ReplayResult> results = replayAll(spread(traces, gpu), specs, gpu, catalog);
            return report(results, allocators.isEmpty() ? specs.subList(0, 1) : specs);
        } catch (IOException e) {
            throw OutputFile.unwritable("--series", series, e);
        }
    }

    private List<Trace> spread(List<Trace> traces, ReplayDevice gpu) {
        Spread spread = new Spread(threads, devices);
        return traces.stream().map(trace -> spread.of(trace, gpu, this::tell)).toList();
    }

    private List<Trace> readTraces() throws InputException {
        if (files.isEmpty()) {
            return BundledTraces.readAll();
        }
        List<Trace> traces = new ArrayList<>();
        for (Path file : files) {
            traces.add(read(file));
        }
        return traces;
    }

    /// A file takes precedence over a bundled trace of the same name.
    private Trace read(Path file) throws InputException {
        String name = file.toString();
        if (name.isEmpty()) {
            throw new UsageException("a trace's name is empty");
        }
        if (Files.exists(file)) {
            return TraceReader.read(file);
        }
        if (BundledTraces.NAMES.contains(name)) {
            return BundledTraces.read(name);
        }
        if (name.matches("\\w+")) {
            throw new InputException(
                    name,
                    "no such file, and no trace of that name; known, nearest first: "
                            + NearestName.listed(name, BundledTraces.NAMES, "cistern replay"));
        }
        return TraceReader.read(file);
    }

    private @Nullable PrintWriter openSeries() throws IOException {
        if (series == null) {
            return null;
        }
        PrintWriter out = new PrintWriter(Files.newBufferedWriter(series));
        out.print(ReservedSeries.HEADER + "\n");
        return out;
    }

    private List<ReplayResult> replayAll(List<Trace> traces, List<String> specs, ReplayDevice opened, Catalog catalog)
            throws IOException {
        opened.notice().ifPresent(this::tell);
        List<ReplayResult> results = new ArrayList<>();
        PeakFiles peaks = new PeakFiles(snapshot, html, files, traces.size() * specs.size() * layers.size() > 1);
        long sessions = (long) traces.size() * specs.size() * layers.size() * (work == Work.CHECK ? 1 : 2);
        try (PrintWriter reserved = openSeries();
                ResultWriter writer = new ResultWriter(format, out());
                Progress progress = new Progress("replay", sessions * repeat)) {
            for (Trace trace : traces) {
                ReplayDevice gpu = deviceFor(trace, opened);
                for (String spec : specs) {
                    progress.message(trace.name() + " " + spec);
                    for (Layer layer : layers) {
                        ReplayResult result = replay(new ReplaySession(
                                trace,
                                spec,
                                plan(layer),
                                gpu,
                                catalog,
                                repeat,
                                progress::step,
                                (_, e) -> failed(trace, spec, e),
                                reserved,
                                peaks.isWanted()
                                        ? PeakSnapshot.Moment.atPeak(
                                                taken -> peaks.add(trace.name() + " " + spec, taken))
                                        : null));
                        results.add(result);
                        writer.write(result.fields());
                    }
                }
            }
            peaks.finish();
            if (reserved != null && reserved.checkError()) {
                throw new IOException("a write failed; is the disk full?");
            }
        }
        peaks.written().forEach(this::tell);
        return results;
    }

    private ReplayDevice deviceFor(Trace trace, ReplayDevice opened) {
        return capacity == null
                ? opened
                : opened.withCapacity(capacity.bytesFor(trace.origins().largestPeakBytes()));
    }

    private Routing.Plan plan(Layer layer) {
        return new Routing.Plan(
                swapEvery == null ? 0 : swapEvery,
                scopes,
                layer,
                ahead == null ? Routing.Plan.USUAL_AHEAD : ahead,
                true);
    }

    private ReplayResult replay(ReplaySession session) {
        ReplaySession.Outcome observed = session.observed(work);
        ReplaySession.Outcome reported = work == Work.CHECK ? observed : timed(session, observed);
        boolean alone = session.gpu() instanceof ReplayDevice.Simulated;
        return new ReplayResult(
                session,
                work,
                reported,
                observed.reservedPeakBytes().orElseThrow(),
                alone ? OptionalLong.of(reported.unreturnedBytes()) : OptionalLong.empty(),
                new Spread(threads, devices).played(session.trace()));
    }

    /// Times a session after unreported warm-up sessions, so that the result compares allocators and not
    /// compilers. One warm-up session is not enough: its compiled code does not know how the next session
    /// begins, and is deoptimised there.
    private ReplaySession.Outcome timed(ReplaySession session, ReplaySession.Outcome observed) {
        if (repeat > 1 || warm.add(session.plan().layer() + " " + session.spec())) {
            long sessionNanos = Math.max(1, repeat * observed.passes().getLast().wallNanos());
            long sessions = Math.min(WARM_UP_NANOS / sessionNanos, WARM_UP_MAX_SESSIONS);
            ReplaySession unseen = session.unseen(repeat);
            for (int i = 0; i < sessions; i++) {
                unseen.timed(work);
            }
        }
        return session.timed(work);
    }

    private synchronized boolean failed(Trace trace, String spec, DeviceOutOfMemoryException failure) {
        failed.add(spec);
        if (firstFailure == null) {
            String report = failure.report()
                    .map(known -> "\n" + known.text().indent(2).stripTrailing())
                    .orElse("");
            firstFailure = trace.name() + " through " + spec + ": " + failure.getMessage() + report;
        }
        return true;
    }

    private int report(List<ReplayResult> results, List<String> judged) {
        if (format == OutputFormat.TEXT) {
            out().print(ResultTable.format(results));
            out().flush();
        }
        if (firstFailure != null) {
            tell(firstFailure);
        }
        long mismatches = results.stream()
                .mapToLong(result -> result.outcome().mismatches())
                .sum();
        if (mismatches > 0) {
            tell("contents lost: " + mismatches + " words of blocks changed while they were live");
            return ExitCode.CONTENTS_LOST;
        }
        return judged.stream().anyMatch(failed::contains) ? ExitCode.ALLOCATION_FAILED : ExitCode.OK;
    }
}
