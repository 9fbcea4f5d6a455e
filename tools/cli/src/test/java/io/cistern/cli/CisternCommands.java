package io.cistern.cli;

import picocli.CommandLine;

/// The program, for tests in other packages.
public final class CisternCommands {
    private CisternCommands() {}

    /// Returns the program with all its commands.
    public static CommandLine program() {
        return CisternCommand.commandLine();
    }
}
