package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.common.TextTable;
import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// All that a command writes for people is no wider than a terminal of 80 columns, but for words that are wider.
final class WidthTests {
    private static final String SNAPSHOT = "../../examples/snapshots/oom.pickle.gz";

    static Stream<String> commands() {
        Stream<String> helps =
                CisternCommand.commandLine().getSubcommands().keySet().stream().map("help "::concat);
        Stream<String> options = ProgramRun.inProcess("options")
                .out()
                .lines()
                .map(title -> "options " + title.split("[ ,]")[0])
                .distinct();
        return Stream.of(
                        Stream.of("--help", "options", "doctor", "doctor --verbose", "replay vit_streams --repeat=1"),
                        Stream.of("fit " + SNAPSHOT, "fit " + SNAPSHOT + " " + SNAPSHOT + " --capacity=2GiB"),
                        helps,
                        options)
                .flatMap(each -> each);
    }

    @ParameterizedTest
    @MethodSource("commands")
    void noLineIsWiderThanATerminal(String command) {
        ProgramRun run = ProgramRun.inProcess(command.split(" "));

        assertThat(run.out().lines())
                .isNotEmpty()
                .allSatisfy(line -> assertThat(line.length() <= TextTable.WIDTH
                                || Arrays.stream(line.strip().split(" "))
                                        .anyMatch(word -> word.length() + 30 > TextTable.WIDTH))
                        .as(line)
                        .isTrue());
    }
}
