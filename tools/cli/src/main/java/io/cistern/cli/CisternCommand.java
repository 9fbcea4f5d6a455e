package io.cistern.cli;

import io.cistern.cli.common.ExitCode;
import io.cistern.cli.common.InputException;
import io.cistern.cli.common.OutputFormat;
import io.cistern.cli.common.ResultStream;
import io.cistern.cli.common.UsageException;
import io.cistern.cli.common.Version;
import io.cistern.cli.common.WordConverter;
import io.cistern.cli.common.Work;
import io.cistern.cli.doctor.DoctorCommand;
import io.cistern.cli.doctor.OptionsCommand;
import io.cistern.cli.fit.FitCommand;
import io.cistern.cli.fit.ReportCommand;
import io.cistern.cli.imports.ImportCommand;
import io.cistern.cli.replay.Layer;
import io.cistern.cli.replay.ReplayCommand;
import io.cistern.cli.top.Column;
import io.cistern.cli.top.TopCommand;
import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.NearestName;
import java.io.PrintWriter;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import picocli.AutoComplete.GenerateCompletion;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.TypeConversionException;
import picocli.CommandLine.UnmatchedArgumentException;

/// The command line program `cistern`: reads the command line, runs a command and sets the exit code.
@Command(
        name = "cistern",
        description = "Pluggable CUDA device-memory allocators for the JVM.",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        synopsisSubcommandLabel = "COMMAND",
        subcommands = {
            ReplayCommand.class,
            ImportCommand.class,
            FitCommand.class,
            ReportCommand.class,
            OptionsCommand.class,
            DoctorCommand.class,
            TopCommand.class,
            GenerateCompletion.class,
            CommandLine.HelpCommand.class
        },
        footer = {
            "",
            "Examples:",
            "  cistern doctor                   what this machine can and can't do, and why",
            "  cistern replay gpt2_train        a recorded program through three allocators",
            "  cistern fit snapshot.pickle      would it fit with another allocator?",
            "",
            "Anywhere on the line, the script also accepts",
            "  --class-path A.jar:B.jar  plug-ins; CISTERN_CLASSPATH does the same",
            "  -Dkey=value               a setting: -Dcistern.allocator=async chooses the",
            "                            current allocator, -Dcistern.plugins=DIR names a",
            "                            directory of plug-ins; doctor lists all settings",
            "CISTERN_JAVA_OPTS may hold options for the JVM.",
            "",
            "In a distribution, cistern gpu-tests runs Cistern's tests on this machine's",
            "GPU; its options are those of JUnit's console.",
            "",
            "Exit codes: 0 success; 1 internal error; 2 bad usage or bad input; 3 an",
            "allocation failed through an allocator that --allocator names, by default the",
            "first of the table (fit: it does not fit); 4 contents of a block were lost;",
            "5 doctor --strict found a problem; 134 native code of a plug-in crashed the",
            "process; 141 the reader closed the output."
        })
public final class CisternCommand implements Runnable {
    @CommandLine.Spec
    private CommandLine.Model.@org.jspecify.annotations.Nullable CommandSpec spec;

    private CisternCommand() {}

    /// Runs the program and exits.
    ///
    /// @param arguments as given on the command line
    public static void main(String[] arguments) {
        ResultStream results = ResultStream.install();
        PrintWriter out = new PrintWriter(results, true, StandardCharsets.UTF_8);
        int exitCode = execute(commandLine().setOut(out), arguments);
        System.exit(out.checkError() && exitCode == ExitCode.OK ? unwritten(results) : exitCode);
    }

    /// Returns the exit code if the output could not be written. It stays silent if the reader closed the pipe
    /// early, as `head` does.
    private static int unwritten(ResultStream results) {
        if (results.isUnread()) {
            return ExitCode.UNREAD;
        }
        System.err.println("cistern: standard output can't be written");
        return ExitCode.UNEXPECTED;
    }

    private static int execute(CommandLine program, String[] arguments) {
        try {
            return program.execute(arguments);
        } catch (OutOfMemoryError e) { // Most likely a huge trace; the JVM is sound, its heap is too small.
            program.getErr()
                    .println("cistern: " + e.getMessage() + ": give the JVM more with CISTERN_JAVA_OPTS=-Xmx16g");
            return ExitCode.UNEXPECTED;
        }
    }

    /// Returns the program with its error handling and UTF-8 output, ready to be executed.
    static CommandLine commandLine() {
        return new CommandLine(new CisternCommand())
                .registerConverter(Column.class, Column::named)
                .registerConverter(Layer.class, new WordConverter<>(Layer.class))
                .registerConverter(OutputFormat.class, new WordConverter<>(OutputFormat.class))
                .registerConverter(Work.class, new WordConverter<>(Work.class))
                .registerConverter(int.class, text -> (int) wholeNumber(text, Integer.SIZE))
                .registerConverter(Integer.class, text -> (int) wholeNumber(text, Integer.SIZE))
                .registerConverter(long.class, text -> wholeNumber(text, Long.SIZE))
                .setOut(new PrintWriter(System.out, true, StandardCharsets.UTF_8))
                .setErr(new PrintWriter(System.err, true, StandardCharsets.UTF_8))
                .setParameterExceptionHandler(CisternCommand::badUsage)
                .setExecutionExceptionHandler(CisternCommand::failed);
    }

    private static long wholeNumber(String text, int bits) {
        if (!text.strip().matches("[+-]?[0-9]+")) {
            throw new TypeConversionException("'" + text + "' is not a whole number");
        }
        BigInteger number = new BigInteger(text.strip());
        if (number.bitLength() >= bits) {
            throw new TypeConversionException("'" + text + "' is too large");
        }
        return number.longValue();
    }

    /// Fails: the command line named no subcommand.
    @Override
    public void run() {
        CommandLine command = java.util.Objects.requireNonNull(spec).commandLine();
        throw new ParameterException(
                command, "no command given; choose one of " + String.join(", ", commands(command)));
    }

    private static List<String> commands(CommandLine program) {
        return program.getSubcommands().entrySet().stream()
                .filter(each -> !each.getValue().getCommandSpec().usageMessage().hidden())
                .map(Map.Entry::getKey)
                .toList();
    }

    private static int badUsage(ParameterException e, String[] arguments) {
        CommandLine command = e.getCommandLine();
        String message = e instanceof UnmatchedArgumentException unmatched
                ? surplus(command, unmatched.getUnmatched().getFirst())
                : String.valueOf(e.getMessage()).lines().findFirst().orElse("bad usage");
        command.getErr()
                .println("cistern: " + message + " (try "
                        + command.getCommandSpec().qualifiedName() + " --help)");
        return ExitCode.BAD_INPUT;
    }

    /// Returns the message for an unknown option, an unknown command or an argument too many.
    private static String surplus(CommandLine command, String argument) {
        if (argument.startsWith("-")) {
            return "there is no option " + argument;
        }
        return command.getSubcommands().isEmpty()
                ? "'" + argument + "' is one argument too many"
                : "there is no command '" + argument + "'; known, nearest first: "
                        + NearestName.listed(argument, commands(command), "cistern help");
    }

    private static int failed(Exception e, CommandLine command, ParseResult result) {
        if (e instanceof InputException) {
            command.getErr().println(e.getMessage());
            return ExitCode.BAD_INPUT;
        }
        if (e instanceof UsageException
                || e instanceof ConfigurationException
                || e instanceof WrongThreadException // of `confined`
                || e instanceof IllegalSettingException) {
            command.getErr().println("cistern: " + e.getMessage());
            return ExitCode.BAD_INPUT;
        }
        e.printStackTrace(command.getErr());
        return ExitCode.UNEXPECTED;
    }
}
