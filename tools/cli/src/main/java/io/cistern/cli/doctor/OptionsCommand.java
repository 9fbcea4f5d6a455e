package io.cistern.cli.doctor;

import io.cistern.cli.common.Candidates;
import io.cistern.cli.common.ExitCode;
import io.cistern.cli.common.Plugins;
import io.cistern.cli.common.Subcommand;
import io.cistern.cli.common.TextTable;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.options.SpecOption;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help;
import picocli.CommandLine.Help.Column;
import picocli.CommandLine.Help.Column.Overflow;
import picocli.CommandLine.Parameters;

/// `cistern options`: lists the options that a spec of an allocator, an adaptor or a segment
/// source may contain.
@Command(
        name = "options",
        description = "Lists the options of an allocator, an adaptor or a segment source.",
        footer = {
            "",
            "Examples:",
            "  cistern options                  all names",
            "  cistern options caching          what caching:KEY=VALUE accepts"
        })
public final class OptionsCommand extends Subcommand {
    private static final int INDENT = 4;

    @Parameters(
            arity = "0..1",
            paramLabel = "NAME",
            description = "An allocator, adaptor or segment source; without it, lists all names.",
            completionCandidates = Candidates.Allocators.class)
    private @Nullable String name;

    @Override
    public Integer call() {
        Catalog catalog = Plugins.catalogWhateverIsSet();
        if (name == null) {
            usable(catalog).forEach(entry -> out().println(title(entry)));
        } else {
            print(name, catalog);
        }
        out().flush();
        return ExitCode.OK;
    }

    private void print(String name, Catalog catalog) {
        List<Catalog.Entry> named = usable(catalog).stream()
                .filter(entry -> entry.name().equals(name))
                .toList();
        if (named.isEmpty()) {
            catalog.allocator(name); // throws an error that lists the known names
        }
        for (Catalog.Entry entry : named) {
            out().println(title(entry));
            List<? extends SpecOption<?>> options = options(entry, catalog);
            if (options.isEmpty()) {
                out().println("    It declares no options.");
            }
            options.forEach(option -> out().print(described(option)));
            if (entry.kind() == Catalog.Kind.SOURCE) {
                out().println("To use it as an allocator: caching:source=" + name);
            }
        }
    }

    static List<Catalog.Entry> usable(Catalog catalog) {
        return catalog.entries().stream()
                .filter(entry -> entry.problem().isEmpty())
                .toList();
    }

    static List<? extends SpecOption<?>> options(Catalog.Entry entry, Catalog catalog) {
        return entry.kind() == Catalog.Kind.ALLOCATOR
                ? catalog.allocator(entry.name()).options()
                : catalog.source(entry.name()).options();
    }

    private static String title(Catalog.Entry entry) {
        return entry.name() + (entry.kind() == Catalog.Kind.ALLOCATOR ? ", an allocator" : ", a segment source");
    }

    private static String described(SpecOption<?> option) {
        Help.TextTable table = Help.TextTable.forColumns(
                Help.defaultColorScheme(Help.Ansi.OFF),
                new Column(INDENT, 0, Overflow.SPAN),
                new Column(TextTable.WIDTH - INDENT, 0, Overflow.WRAP));
        table.addRowValues("  " + option.key());
        table.addRowValues("", plain(option.meaning()));
        table.addRowValues("", "valid: " + plain(option.legal()));
        table.addRowValues("", "default: " + plain(option.usual()));
        return table.toString();
    }

    private static String plain(String markdown) {
        return markdown.replace("`", "");
    }
}
