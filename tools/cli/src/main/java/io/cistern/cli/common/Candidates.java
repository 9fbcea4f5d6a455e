package io.cistern.cli.common;

import io.cistern.spi.catalog.Catalog;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;

/// The words that shells complete; `generate-completion` writes them into its script.
public final class Candidates {
    private Candidates() {}

    /// The names of the usable allocators and segment sources.
    public static final class Allocators implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            try {
                return Plugins.catalogWhateverIsSet().entries().stream()
                        .filter(entry -> entry.problem().isEmpty())
                        .map(Catalog.Entry::name)
                        .distinct()
                        .sorted()
                        .iterator();
            } catch (RuntimeException e) { // The script is useful without them; `doctor` tells what is wrong.
                return Collections.emptyIterator();
            }
        }
    }

    /// The devices that need no number.
    public static final class Devices implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            return List.of("auto", "simulated").iterator();
        }
    }
}
