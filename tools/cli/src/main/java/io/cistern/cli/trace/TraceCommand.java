package io.cistern.cli.trace;

import io.cistern.cli.common.ByteSizeConverter;
import io.cistern.cli.common.ExitCode;
import io.cistern.cli.common.UsageException;
import io.cistern.cli.common.Version;
import io.cistern.cli.generated.GeneratedTrace;
import io.cistern.cli.generated.TraceSink;
import java.io.PrintWriter;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `cistern trace`: writes a generated trace for other programs.
@Command(
        name = "trace",
        description = "Writes a generated allocation trace, as CSV of format 2: of a program that fragments memory on"
                + " purpose, or of one of its kind.",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        sortOptions = false)
public final class TraceCommand implements Callable<Integer> {
    @Spec
    private @Nullable CommandSpec command;

    @Parameters(
            paramLabel = "NAME",
            completionCandidates = TraceCandidates.Generated.class,
            description =
                    "To fragment memory: long_lived, drifting, short_streams, sawtooth or phases. Programs of a kind:"
                            + " training, accumulation, generation, serving, graphs, streams, columns or images.")
    private String name = "";

    @Option(
            names = "--capacity",
            paramLabel = "BYTES",
            converter = ByteSizeConverter.class,
            description = "Memory of the device that it is made for; default 16GiB.")
    private long capacity = GeneratedTrace.USUAL_CAPACITY_BYTES;

    @Option(
            names = "--seed",
            paramLabel = "N",
            defaultValue = "1",
            description = "Another seed, another trace; default ${DEFAULT-VALUE}.")
    private long seed = GeneratedTrace.USUAL_SEED;

    @Override
    public Integer call() {
        GeneratedTrace trace = GeneratedTrace.named(name)
                .orElseThrow(() -> new UsageException("no generated trace is"
                        + " named '" + name + "'; known: "
                        + String.join(", ", GeneratedTrace.labels())));
        GeneratedTraces.requireCapacity(capacity); // before the header, so that a refused command leaves no file
        PrintWriter out = Objects.requireNonNull(command).commandLine().getOut();
        out.print("op,id,bytes,stream,device,thread,nanos\n");
        trace.write(seed, capacity, new Rows(out));
        out.flush();
        return ExitCode.OK;
    }

    private record Rows(PrintWriter out) implements TraceSink {
        @Override
        public void allocate(long id, long byteSize, long stream) {
            row('a', id, byteSize, stream);
        }

        @Override
        public void free(long id, long stream) {
            row('f', id, 0, stream);
        }

        @Override
        public void use(long id, long stream) {
            row('u', id, 0, stream);
        }

        @Override
        public void await(long stream, long awaited) {
            row('w', awaited, 0, stream);
        }

        @Override
        public void end(long stream) {
            row('e', 0, 0, stream);
        }

        private void row(char op, long id, long byteSize, long stream) {
            out.print(op + "," + id + "," + byteSize + "," + stream + ",0,0,0\n");
        }
    }
}
