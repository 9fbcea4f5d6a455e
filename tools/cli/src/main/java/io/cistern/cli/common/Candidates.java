package io.cistern.cli.common;

import io.cistern.spi.catalog.Catalog;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;

/// The words that shells complete, as they are when `generate-completion` writes its script.
public final class Candidates {
    private Candidates() {}

    /// Allocators that are found: a segment source is one too.
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
            } catch (RuntimeException e) { // The script is worth having without them; doctor tells what is wrong.
                return Collections.emptyIterator();
            }
        }
    }

    /// What needs no number.
    static final class Devices implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            return List.of("auto", "simulated").iterator();
        }
    }
}
