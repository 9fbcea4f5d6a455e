package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.loader.LoaderCatalogProvider;
import io.cistern.spi.catalog.Catalog;
import java.net.URL;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/// Whoever asks for an allocator of Cistern's whose JAR is missing is told which one brings it.
class MissingArtifactTests {
    private static final Set<String> ALWAYS_THERE = Set.of("direct", "library", "linear", "managed", "pages");

    @Test
    void everyNameLeadsToItsArtifact() {
        Catalog nothing = new LoaderCatalogProvider().discover(new NoServices());
        List<Catalog.Entry> own = new LoaderCatalogProvider()
                .discover(getClass().getClassLoader()).entries().stream()
                        .filter(entry -> !ALWAYS_THERE.contains(entry.name()))
                        .filter(entry -> !entry.origin().contains("/tools/")) // What is not published.
                        .toList();

        assertThat(own).extracting(Catalog.Entry::name).contains("async", "caching", "nccl", "limit", "arbiter");
        for (Catalog.Entry entry : own) {
            assertThatThrownBy(() -> nothing.allocator(entry.name()))
                    .hasMessageMatching("no allocator is named '.*'; add [a-z-]+, which provides it; .*")
                    .satisfies(refusal -> assertThat(entry.origin())
                            .contains(String.valueOf(refusal.getMessage())
                                    .replaceAll(".*; add cistern-([a-z-]+),.*", "$1")));
        }
    }

    /// Sees every class, and no service.
    private static final class NoServices extends ClassLoader {
        NoServices() {
            super(MissingArtifactTests.class.getClassLoader());
        }

        @Override
        public Enumeration<URL> getResources(String name) {
            return Collections.emptyEnumeration();
        }
    }
}
