package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// What helps to write a line: `cistern help`, and what a shell completes.
final class HelpTests {
    @TempDir
    private Path folder;

    @Test
    void helpIsACommandToo() {
        assertThat(ProgramRun.inProcess("help")).isEqualTo(ProgramRun.inProcess("--help"));
        assertThat(ProgramRun.inProcess("help", "replay")).isEqualTo(ProgramRun.inProcess("replay", "--help"));
        assertThat(ProgramRun.inProcess("help").exitCode()).isZero();
        assertThat(ProgramRun.inProcess("help").out())
                .contains("cistern gpu-tests", "\n  -Dkey=value               a setting: -Dcistern.");
        assertThat(ProgramRun.inProcess("help", "repaly").exitCode()).isEqualTo(2);
    }

    @ParameterizedTest
    @ValueSource(strings = {"replay", "import", "fit", "report", "options", "doctor", "top"})
    void eachCommandShowsExamples(String command) {
        assertThat(ProgramRun.inProcess(command, "--help").out()).contains("Examples:\n  cistern " + command);
    }

    @ParameterizedTest
    @CsvSource({
        "cistern replay --allocator cach, caching",
        "cistern replay --allocator nc, nccl",
        "cistern replay gnn, gnn_sample",
        "cistern replay --work mem, memset",
        "cistern replay --format jsonl --layer buf, buffer",
    })
    void aShellCompletesWhatThereIs(String line, String completed) throws Exception {
        Path completion = Files.writeString(
                folder.resolve("completion.sh"),
                ProgramRun.inProcess("generate-completion").out());
        String[] words = line.split(" ", -1);
        String ask = "source '" + completion + "'; COMP_WORDS=(" + line + "); COMP_CWORD=" + (words.length - 1)
                + "; COMP_LINE='" + line + "'; _complete_cistern; echo \"${COMPREPLY[@]}\"";

        ProgramRun shell = ProgramRun.of(Path.of("/bin/bash"), folder, Map.of(), "-c", ask);

        assertThat(shell.out().strip()).as(shell.err()).isEqualTo(completed);
    }
}
