package io.cistern.loader;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URL;
import java.net.URLConnection;
import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.Enumeration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;

/// Reads the files `META-INF/services/SERVICE` that a class loader sees. [java.util.ServiceLoader] reads them
/// too. But it does not name the JAR of a bad entry, and if two JARs have the same class it silently takes the
/// first. This class finds both. The service loader reports files that can't be read.
final class ServicesFiles {
    /// The place of a bad entry.
    record Place(String className, String origin) {}

    private final String resource;
    private final ClassLoader loader;
    private final Map<String, String> originsByFile = new LinkedHashMap<>();
    private final Map<String, Set<String>> originsByClass = new LinkedHashMap<>();

    ServicesFiles(Class<?> service, ClassLoader loader) {
        this.resource = PluginClassLoader.servicesFile(service);
        this.loader = loader;
        try {
            for (Enumeration<URL> all = loader.getResources(resource); all.hasMoreElements(); ) {
                read(all.nextElement());
            }
        } catch (IOException | UncheckedIOException e) {
            // The service loader meets the same error and reports it.
        }
    }

    /// Returns the JARs whose services file names the class, in order of path.
    List<String> origins(String className) {
        return List.copyOf(originsByClass.getOrDefault(className, Set.of()));
    }

    /// Returns the entry that caused an error of the service loader.
    Place culprit(Throwable error, Set<String> delivered) {
        String message = String.valueOf(error.getMessage());
        return longest(delivered, name -> message.contains(name) || message.contains(name.replace('.', '/')))
                .or(() -> longest(delivered, name -> failsAlike(name, error)))
                .or(() -> originsByFile.entrySet().stream()
                        .filter(file -> message.contains(file.getKey()))
                        .findFirst()
                        .map(file -> new Place(resource, file.getValue())))
                .orElseGet(() -> new Place(resource, Origin.UNKNOWN));
    }

    /// Returns the suspect with the longest name, since one name may begin with another.
    private Optional<Place> longest(Set<String> delivered, Predicate<String> suspect) {
        return originsByClass.entrySet().stream()
                .filter(entry -> !delivered.contains(entry.getKey()) && suspect.test(entry.getKey()))
                .max(Comparator.comparingInt(entry -> entry.getKey().length()))
                .map(entry ->
                        new Place(entry.getKey(), entry.getValue().iterator().next()));
    }

    /// Returns whether loading a class fails with the same error: an error about a class that the provider
    /// needs does not name the provider, but occurs again.
    private boolean failsAlike(String className, Throwable error) {
        try {
            Class.forName(className, false, loader);
            return false;
        } catch (LinkageError again) {
            return String.valueOf(again.getMessage()).equals(error.getMessage());
        } catch (ClassNotFoundException other) {
            return false;
        }
    }

    private void read(URL file) {
        String origin = Origin.ofServicesFile(file, resource);
        originsByFile.put(file.toString(), origin);
        for (String className : classNames(file)) {
            originsByClass
                    .computeIfAbsent(className, ignored -> new TreeSet<>())
                    .add(origin);
        }
    }

    private static List<String> classNames(URL file) {
        try {
            URLConnection connection = file.openConnection();
            connection.setUseCaches(false); // a cached JAR would stay open
            try (BufferedReader lines =
                    new BufferedReader(new InputStreamReader(connection.getInputStream(), StandardCharsets.UTF_8))) {
                return lines.lines()
                        .map(line -> line.split("#", 2)[0].strip())
                        .filter(name -> !name.isEmpty())
                        .toList();
            }
        } catch (IOException | UncheckedIOException e) {
            return List.of(); // the service loader meets the same error and reports it
        }
    }
}
