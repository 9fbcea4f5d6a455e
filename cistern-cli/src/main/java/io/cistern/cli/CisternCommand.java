package io.cistern.cli;

import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import picocli.AutoComplete.GenerateCompletion;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;

/// The program `cistern`.
@Command(
        name = "cistern",
        description = "Pluggable CUDA device-memory allocators for the JVM.",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        synopsisSubcommandLabel = "COMMAND",
        subcommands = {
            ReplayCommand.class,
            BenchCommand.class,
            BenchForkCommand.class,
            TraceCommand.class,
            DoctorCommand.class,
            GenerateCompletion.class
        },
        footer = {
            "",
            "Everywhere on the line, the script also takes",
            "  --class-path A.jar:B.jar  plug-ins; CISTERN_CLASSPATH does the same",
            "  -Dkey=value               a system property, for example -Dcistern.allocator=async",
            "and CISTERN_JAVA_OPTS may hold options for the JVM. -Dcistern.plugins=DIR is a directory of plug-ins.",
            "",
            "Exit codes: 0 fine; 1 a defect; 2 bad usage or bad input; 3 an allocation failed;",
            "4 contents of a block were lost."
        })
public final class CisternCommand implements Runnable {
    @CommandLine.Spec
    private CommandLine.Model.@org.jspecify.annotations.Nullable CommandSpec spec;

    private CisternCommand() {}

    /// Runs the program and exits.
    ///
    /// @param arguments as given on the command line
    public static void main(String[] arguments) {
        PrintWriter out = new PrintWriter(ResultStream.install(), true, StandardCharsets.UTF_8);
        int exitCode = execute(commandLine().setOut(out), arguments);
        if (out.checkError() && exitCode == ExitCode.OK) {
            System.err.println("cistern: standard output can't be written");
            exitCode = ExitCode.UNEXPECTED;
        }
        System.exit(exitCode);
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

    /// The program with its error handling and UTF-8 output, ready to be executed.
    static CommandLine commandLine() {
        return new CommandLine(new CisternCommand())
                .setCaseInsensitiveEnumValuesAllowed(true)
                .setOut(new PrintWriter(System.out, true, StandardCharsets.UTF_8))
                .setErr(new PrintWriter(System.err, true, StandardCharsets.UTF_8))
                .setParameterExceptionHandler(CisternCommand::badUsage)
                .setExecutionExceptionHandler(CisternCommand::failed);
    }

    /// Without a subcommand.
    @Override
    public void run() {
        throw new ParameterException(java.util.Objects.requireNonNull(spec).commandLine(), "Missing command");
    }

    private static int badUsage(ParameterException e, String[] arguments) {
        CommandLine command = e.getCommandLine();
        String message = String.valueOf(e.getMessage()).lines().findFirst().orElse("bad usage");
        command.getErr()
                .println("cistern: " + message + " (try "
                        + command.getCommandSpec().qualifiedName() + " --help)");
        return ExitCode.BAD_INPUT;
    }

    private static int failed(Exception e, CommandLine command, ParseResult result) {
        if (e instanceof TraceException) {
            command.getErr().println(e.getMessage());
            return ExitCode.BAD_INPUT;
        }
        if (e instanceof UsageException) {
            command.getErr().println("cistern: " + e.getMessage());
            return ExitCode.BAD_INPUT;
        }
        e.printStackTrace(command.getErr());
        return ExitCode.UNEXPECTED;
    }
}
