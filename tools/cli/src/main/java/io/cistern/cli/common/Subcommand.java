package io.cistern.cli.common;

import java.io.PrintWriter;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/// A command of the program, with the options for help and the version. It returns its exit code.
@Command(mixinStandardHelpOptions = true, versionProvider = Version.class, sortOptions = false)
public abstract class Subcommand implements Callable<Integer> {
    @Spec
    private @Nullable CommandSpec command;

    /// Returns the stream for results.
    protected final PrintWriter out() {
        return Objects.requireNonNull(command).commandLine().getOut();
    }

    /// Returns the stream for everything that is not a result.
    protected final PrintWriter err() {
        return Objects.requireNonNull(command).commandLine().getErr();
    }

    /// Prints a line for people that is not a result.
    protected final void tell(String line) {
        err().println("cistern: " + line);
    }
}
