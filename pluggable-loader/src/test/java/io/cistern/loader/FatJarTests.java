package io.cistern.loader;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.catalog.Catalog;
import java.io.IOException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.logging.Filter;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// A fat JAR that was made carelessly has all classes, and of services files with one name only one JAR's.
class FatJarTests {
    private static final String FILE = "META-INF/services/" + AllocatorProvider.class.getName();

    @TempDir
    private Path folder;

    @ParameterizedTest
    @CsvSource({
        "io.cistern.loader.library.LibraryProvider, io.cistern.internal.direct.DirectProvider",
        "io.cistern.internal.direct.DirectProvider, io.cistern.loader.library.LibraryProvider"
    })
    void whoAsksForALostOneIsToldTheCure(String kept, String lost) throws IOException {
        List<String> logged = new ArrayList<>();
        Logger logger = Logger.getLogger(ProviderScan.class.getName());
        Filter before = logger.getFilter();
        logger.setFilter(line -> !logged.add(line.getMessage()));
        try {
            Catalog catalog = new LoaderCatalogProvider().discover(new OneServicesFile(kept));
            assertThatThrownBy(() -> catalog.allocator("caching"))
                    .hasMessageContaining(FILE + " of the class path does not name " + lost)
                    .hasMessageContaining("must be merged: with ServicesResourceTransformer");
            assertThat(logged).singleElement().asString().contains(lost, "must be merged");
        } finally {
            logger.setFilter(before);
        }
    }

    @Test
    void whereNothingIsLeftToBeCurrentTheCureIsTold() throws IOException {
        Catalog catalog =
                new LoaderCatalogProvider().discover(new OneServicesFile("io.cistern.loader.library.LibraryProvider"));

        assertThatThrownBy(() -> catalog.choose(new NoDevices()))
                .hasMessageStartingWith("no allocator can be current: none with a priority above 0 was found; ")
                .hasMessageContaining("must be merged");
    }

    @Test
    void aClassPathOfJarsIsSound() {
        assertThat(new LoaderCatalogProvider()
                        .discover(getClass().getClassLoader())
                        .entries())
                .extracting(Catalog.Entry::name)
                .contains("direct", "library")
                .doesNotContain(FILE);
    }

    private final class OneServicesFile extends ClassLoader {
        private final URL file;

        OneServicesFile(String provider) throws IOException {
            super(FatJarTests.class.getClassLoader());
            file = Files.writeString(folder.resolve("services"), provider)
                    .toUri()
                    .toURL();
        }

        @Override
        public Enumeration<URL> getResources(String name) throws IOException {
            return name.equals(FILE) ? Collections.enumeration(List.of(file)) : super.getResources(name);
        }
    }
}
