package io.cistern.cli.doctor;

import io.cistern.cli.common.ExitCode;
import io.cistern.cli.common.OutputFormat;
import io.cistern.cli.common.ResultWriter;
import io.cistern.cli.common.Subcommand;
import io.cistern.cli.common.Version;
import java.io.IOException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/// `cistern doctor`: shows what this machine can do and, for each "no", the reason and the remedy.
@Command(
        name = "doctor",
        description = "Shows problems first, then what the driver, the devices and the plug-ins can do.",
        footer = {
            "",
            "Examples:",
            "  cistern doctor                       problems first, on one screen",
            "  cistern doctor --strict              exit code 5 if there are problems, for scripts",
            "  cistern doctor -Dcistern.plugins=DIR --verbose"
        })
public final class DoctorCommand extends Subcommand {
    @Option(
            names = "--verbose",
            description =
                    "All findings: the features of devices, allocators and sources with their origin, all settings.")
    private boolean verbose;

    @Option(names = "--format", paramLabel = "FORMAT", defaultValue = "text", description = OutputFormat.WORDS)
    private OutputFormat format = OutputFormat.TEXT;

    @Option(
            names = "--strict",
            description =
                    "Exits with code 5 if there are problems: an invalid setting, a misconfigured driver, a simulated"
                            + " GPU that was not requested, an unusable plug-in, no current allocator.")
    private boolean strict;

    @Override
    public Integer call() throws IOException {
        Diagnosis diagnosis = Diagnosis.make(strict);
        switch (format) {
            case TEXT -> out().print(verbose ? DiagnosisText.all(diagnosis) : DiagnosisText.brief(diagnosis));
            case JSON, JSONL -> out().println(ResultWriter.line(DiagnosisJson.of(diagnosis, Version.number())));
        }
        out().flush();
        return strict && !diagnosis.problems().isEmpty() ? ExitCode.PROBLEM : ExitCode.OK;
    }
}
