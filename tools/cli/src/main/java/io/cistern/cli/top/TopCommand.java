package io.cistern.cli.top;

import static io.cistern.cli.common.ResultWriter.object;

import com.sun.tools.attach.VirtualMachine;
import com.sun.tools.attach.VirtualMachineDescriptor;
import io.cistern.cli.common.ExitCode;
import io.cistern.cli.common.OutputFormat;
import io.cistern.cli.common.ResultWriter;
import io.cistern.cli.common.Subcommand;
import io.cistern.cli.common.TextTable;
import io.cistern.cli.common.UsageException;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.jline.terminal.Terminal;
import org.jline.terminal.TerminalBuilder;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `cistern top`: shows a running program's use of device memory.
@Command(
        name = "top",
        description = "Shows how a running JVM uses device memory: devices, allocators and pools, rates, cache"
                + " hits, free and stranded memory, and waiting threads.",
        footer = {
            "",
            "Examples:",
            "  cistern top                      which programs show their device memory",
            "  cistern top 4711                 one of them, every two seconds",
            "  cistern top 4711 --once --format json",
            "",
            "> marks the current allocator, * the column to sort by. A narrow terminal",
            "leaves columns out; sorting by one shows it.",
            "",
            "Keys: < and > (or arrows) choose the column to sort by, r reverses the order,",
            "w shows which threads wait in Cistern, s has the program write a snapshot,",
            "q quits. The program must register a bean of its device memory, by",
            "-Dcistern.observe=jmx or MemoryBeans.register."
        })
public final class TopCommand extends Subcommand {
    private static final int MAX_INTERVAL_SECONDS = 3600;
    private static final int MILLIS_A_SECOND = 1000;
    private static final String HOW =
            "; a program shows it with -Dcistern.observe=jmx, or once it calls MemoryBeans.register";

    @Parameters(
            arity = "0..1",
            paramLabel = "PID",
            description = "The process; without it, lists the JVMs of this user that can be inspected.")
    private @Nullable Long pid;

    @Option(
            names = "--interval",
            paramLabel = "SECONDS",
            defaultValue = "2",
            description = "Time between two readings, for example 0.5; default ${DEFAULT-VALUE}.")
    private double interval = 2;

    @Option(
            names = "--once",
            description = "Prints one table, with rates over one interval, and exits. So does any format but text.")
    private boolean once;

    @Option(
            names = "--sort",
            paramLabel = "COLUMN",
            defaultValue = "reserved",
            description = "The column to sort by at first: ${COMPLETION-CANDIDATES}.")
    private Column sort = Column.RESERVED;

    @Option(names = "--format", paramLabel = "FORMAT", defaultValue = "text", description = OutputFormat.WORDS)
    private OutputFormat format = OutputFormat.TEXT;

    @Override
    public Integer call() throws InterruptedException {
        if (!(interval > 0 && interval <= MAX_INTERVAL_SECONDS)) {
            throw new UsageException(
                    "--interval must be above 0 and at most " + MAX_INTERVAL_SECONDS + ", not " + interval);
        }
        if (pid == null) {
            list(VirtualMachine.list().stream().map(VirtualMachineDescriptor::id));
            return ExitCode.OK;
        }
        try (AttachedJvm program = AttachedJvm.attach(Long.toString(pid))) {
            if (program.memories().isEmpty()) {
                throw new UsageException("process " + pid + " shows no device memory" + HOW);
            }
            if (once || format != OutputFormat.TEXT) {
                printOnce(program);
            } else {
                watch(program);
            }
            return ExitCode.OK;
        } catch (IOException e) {
            throw new UsageException("process " + pid + " can no longer be inspected: " + e.getMessage());
        }
    }

    void list(Stream<String> pids) {
        String own = Long.toString(ProcessHandle.current().pid());
        List<Listed> found = pids.filter(each -> !each.equals(own))
                .flatMap(each -> listed(each).stream())
                .toList();
        if (format != OutputFormat.TEXT) {
            try (ResultWriter writer = new ResultWriter(format, out())) {
                found.forEach(each -> writer.write(each.fields()));
            }
        } else if (found.isEmpty()) {
            out().println("no JVM of this user shows device memory" + HOW);
        } else {
            out().print(TextTable.format(
                    List.of(List.of("pid", "memories", "program")),
                    found.stream()
                            .map(each -> List.of(each.pid, String.join(", ", each.memories), each.command))
                            .toList(),
                    3));
        }
        out().flush();
    }

    private record Listed(String pid, List<String> memories, String command) {
        Map<String, @Nullable Object> fields() {
            return object("pid", Long.parseLong(pid), "memories", memories, "program", command);
        }
    }

    private static Optional<Listed> listed(String pid) {
        try (AttachedJvm program = AttachedJvm.attach(pid)) {
            List<String> memories = program.memories();
            return memories.isEmpty() ? Optional.empty() : Optional.of(new Listed(pid, memories, program.command()));
        } catch (UsageException | IOException cannotBeLookedAt) {
            return Optional.empty();
        }
    }

    private void printOnce(AttachedJvm program) throws IOException, InterruptedException {
        List<Reading> before = program.read();
        Thread.sleep(interval());
        List<Reading> now = program.read();
        List<Row> rows = Row.of(before, now);
        List<WaitingThread> waiting = program.waiting();
        if (format == OutputFormat.TEXT) {
            out().print(TopTable.format(now, rows, sort, false, Integer.MAX_VALUE));
            out().print(TopTable.format(waiting));
            out().flush();
            return;
        }
        try (ResultWriter writer = new ResultWriter(format, out())) {
            now.forEach(reading -> writer.write(reading.fields(program.pid(), rows, waiting)));
        }
    }

    private void watch(AttachedJvm program) throws IOException {
        try (Terminal terminal =
                TerminalBuilder.builder().system(true).dumb(true).build()) {
            if (terminal.getType().startsWith(Terminal.TYPE_DUMB)) {
                throw new UsageException("there is no terminal to show figures on; --once prints them");
            }
            new TopScreen(terminal, program, interval(), sort).run();
        }
    }

    private Duration interval() {
        return Duration.ofMillis(Math.max(1, (long) (interval * MILLIS_A_SECOND)));
    }
}
