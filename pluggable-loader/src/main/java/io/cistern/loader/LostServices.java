package io.cistern.loader;

import io.cistern.loader.library.LibraryProvider;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.catalog.Catalog.Kind;
import java.util.List;
import java.util.Optional;

/// Detects that a fat JAR lost services files. Two JARs that are always present provide an allocator each. If
/// the build kept only one of their files, one of the two allocators is missing.
final class LostServices {
    private static final String FILE = PluginClassLoader.servicesFile(AllocatorProvider.class);
    private static final List<String> ALWAYS_THERE =
            List.of("io.cistern.internal.direct.DirectProvider", LibraryProvider.class.getName());

    private LostServices() {}

    /// Returns the problem with the services file, or empty if there is none.
    static Optional<DiscoveredProvider<AllocatorProvider>> among(
            List<DiscoveredProvider<AllocatorProvider>> found, ClassLoader loader) {
        for (String provider : ALWAYS_THERE) {
            if (found.stream().noneMatch(one -> one.className().equals(provider)) && sees(loader, provider)) {
                return Optional.of(DiscoveredProvider.broken(
                        Kind.ALLOCATOR, FILE, "the class path", Optional.empty(), 0, problem(provider)));
            }
        }
        return Optional.empty();
    }

    private static String problem(String className) {
        return "does not name " + className + ", whose class is here. In a fat JAR the files in META-INF/services must"
                + " be merged: with ServicesResourceTransformer in Maven's shade plug-in, with mergeServiceFiles() in"
                + " Gradle's shadow plug-in";
    }

    private static boolean sees(ClassLoader loader, String className) {
        try {
            Class.forName(className, false, loader);
            return true;
        } catch (ClassNotFoundException | LinkageError e) {
            return false;
        }
    }
}
