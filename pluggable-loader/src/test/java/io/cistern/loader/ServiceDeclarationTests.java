package io.cistern.loader;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.spi.catalog.CatalogProvider;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.module.ModuleDescriptor.Provides;
import java.lang.module.ModuleFinder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;

class ServiceDeclarationTests {
    @Test
    void classPathAndModulePathProvideTheSame() throws IOException {
        List<String> onModulePath = ModuleFinder.of(PluginJar.home(LoaderCatalogProvider.class))
                .find("io.cistern.loader")
                .orElseThrow()
                .descriptor()
                .provides()
                .stream()
                .filter(provides -> provides.service().equals(CatalogProvider.class.getName()))
                .map(Provides::providers)
                .flatMap(List::stream)
                .toList();

        assertThat(onModulePath).isNotEmpty().isEqualTo(onClassPath());
    }

    private static List<String> onClassPath() throws IOException {
        String file = "/META-INF/services/" + CatalogProvider.class.getName();
        try (BufferedReader lines = new BufferedReader(
                new InputStreamReader(LoaderCatalogProvider.class.getResourceAsStream(file), StandardCharsets.UTF_8))) {
            return lines.lines().toList();
        }
    }
}
