package io.cistern.jvm;

import java.io.IOException;
import java.lang.reflect.Modifier;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Finds the types of a module that have something to close.
public final class ClosingTypes {
    private static final String CLASS_FILE = ".class";

    private ClosingTypes() {}

    /// Returns the public types beside a class that are [AutoCloseable], or have a static method that returns
    /// something to close.
    ///
    /// @param ofModule a class of the module, in a folder of classes
    public static Set<Class<?>> beside(Class<?> ofModule) throws IOException, URISyntaxException {
        Path root = Path.of(
                ofModule.getProtectionDomain().getCodeSource().getLocation().toURI());
        try (Stream<Path> files = Files.walk(root)) {
            return files.map(root::relativize)
                    .map(Path::toString)
                    .filter(file ->
                            file.endsWith(CLASS_FILE) && !file.endsWith("-info.class") && !file.contains("META-INF"))
                    .map(file -> classOf(file, ofModule.getClassLoader()))
                    .filter(ClosingTypes::isPublic)
                    .filter(ClosingTypes::hasToBeClosed)
                    .collect(Collectors.toCollection(() -> new TreeSet<>(Comparator.comparing(Class::getName))));
        }
    }

    private static Class<?> classOf(String file, ClassLoader loader) {
        String name = file.substring(0, file.length() - CLASS_FILE.length()).replace('/', '.');
        try {
            return Class.forName(name, false, loader);
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(e);
        }
    }

    private static boolean isPublic(Class<?> type) {
        Class<?> outer = type.getEnclosingClass();
        return Modifier.isPublic(type.getModifiers()) && (outer == null || isPublic(outer));
    }

    private static boolean hasToBeClosed(Class<?> type) {
        return AutoCloseable.class.isAssignableFrom(type)
                || Arrays.stream(type.getMethods())
                        .anyMatch(method -> Modifier.isStatic(method.getModifiers())
                                && AutoCloseable.class.isAssignableFrom(method.getReturnType()));
    }
}
