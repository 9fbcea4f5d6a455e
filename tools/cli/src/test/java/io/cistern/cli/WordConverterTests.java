package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.common.OutputFormat;
import io.cistern.cli.common.WordConverter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine.Model.OptionSpec;

/// Options that take one of some words.
final class WordConverterTests {
    private record Worded(String command, OptionSpec option, Class<? extends Enum<?>> type) {
        @Override
        public String toString() {
            return command + " " + option.longestName();
        }
    }

    private static List<Worded> optionsOfWords() {
        List<Worded> all = new ArrayList<>();
        CisternCommand.commandLine()
                .getSubcommands()
                .forEach((name, command) -> command.getCommandSpec()
                        .options()
                        .forEach(option -> constants(option)
                                .map(type -> new Worded(name, option, type))
                                .forEach(all::add)));
        return all;
    }

    @SuppressWarnings("unchecked")
    private static Stream<Class<? extends Enum<?>>> constants(OptionSpec option) {
        Class<?> type = option.auxiliaryTypes().length > 0 ? option.auxiliaryTypes()[0] : option.type();
        return type.isEnum() ? Stream.of((Class<? extends Enum<?>>) type) : Stream.empty();
    }

    @ParameterizedTest
    @MethodSource("optionsOfWords")
    void aWrongWordIsAnsweredWithTheWordsThatPeopleType(Worded worded) {
        String option = worded.option().longestName();
        ProgramRun run = ProgramRun.inProcess(worded.command(), option + "=xml");

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err().lines())
                .singleElement()
                .asString()
                .contains(option, "'xml' is not one of these, nearest first: ")
                .contains(Stream.of(worded.type().getEnumConstants())
                        .map(each -> each.name().toLowerCase(Locale.ROOT))
                        .toList())
                .doesNotContain("expected one of");
    }

    @Test
    void thereAreSuchOptions() {
        assertThat(optionsOfWords()).extracting(Worded::toString).contains("replay --work", "replay --layer");
    }

    @Test
    void theNearestIsTheFirst() {
        assertThat(ProgramRun.inProcess("replay", "--work=cheque").err())
                .isEqualToIgnoringNewLines("cistern: Invalid value for option '--work': 'cheque' is not one of"
                        + " these, nearest first: check, memset, none (try cistern replay --help)\n");
    }

    @ParameterizedTest
    @CsvSource({"text", "TEXT", "Text"})
    void anyLetterCaseWillDo(String text) {
        assertThat(new WordConverter<>(OutputFormat.class).convert(text)).isEqualTo(OutputFormat.TEXT);
    }
}
