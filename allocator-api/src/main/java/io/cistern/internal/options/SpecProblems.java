package io.cistern.internal.options;

import io.cistern.cuda.CisternException;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.options.AllocatorSpec;
import io.cistern.spi.options.SpecOption;
import java.util.ArrayList;
import java.util.List;

/// Finds the problems of a spec and of the specs inside it, without opening anything: unknown names,
/// unknown options, values that options refuse. Contradictory options are found only when it is opened.
public final class SpecProblems {
    private static final String SOURCE = "source";
    private static final String UPSTREAM = "upstream";

    private final Catalog catalog;
    private final List<String> found = new ArrayList<>();

    private SpecProblems(Catalog catalog) {
        this.catalog = catalog;
    }

    /// Returns a readable line for each problem; none if all is well.
    public static List<String> of(String spec, Catalog catalog) {
        SpecProblems problems = new SpecProblems(catalog);
        problems.note(() -> problems.check(spec));
        return problems.found;
    }

    private void note(Runnable check) {
        try {
            check.run();
        } catch (CisternException problem) {
            found.add(String.valueOf(problem.getMessage()));
        }
    }

    private void check(String text) {
        AllocatorSpec spec = catalog.complete(AllocatorSpec.parse(text));
        AllocatorProvider provider = catalog.allocator(spec.name());
        SpecOptions options = new SpecOptions(spec);
        AllocatorSpec other = provider.redirect(options).orElse(null);
        if (other != null) {
            note(options::rejectUnread);
            check(other.text());
            return;
        }
        List<? extends SpecOption<?>> declared = provider.options();
        read(declared, options);
        boolean knowsAll = !declared.isEmpty(); // a plug-in need not declare what it reads
        if (declares(declared, SOURCE)) {
            String source = options.text(SOURCE).orElse(null);
            knowsAll &= source == null || checkSource(AllocatorSpec.parse(source), options);
        }
        if (knowsAll) {
            note(options::rejectUnread);
        }
        if (declares(declared, UPSTREAM)) {
            options.text(UPSTREAM).ifPresent(upstream -> note(() -> check(upstream)));
        }
    }

    /// @return whether the source declares its options
    private boolean checkSource(AllocatorSpec source, SpecOptions outer) {
        List<? extends SpecOption<?>> declared = catalog.source(source.name()).options();
        SpecOptions options = outer.ofSource(source);
        read(declared, options);
        if (!declared.isEmpty()) {
            note(options::rejectUnread);
        }
        return !declared.isEmpty();
    }

    private void read(List<? extends SpecOption<?>> declared, SpecOptions options) {
        declared.forEach(option -> note(() -> option.read(options)));
    }

    private static boolean declares(List<? extends SpecOption<?>> declared, String key) {
        return declared.stream().anyMatch(option -> option.key().equals(key));
    }
}
