package io.cistern.loader;

import java.net.URI;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Path;
import java.security.CodeSource;

/// Describes where a class or a services file came from: the path of a JAR or folder, or a module with its
/// path.
final class Origin {
    static final String UNKNOWN = "an unknown place";

    private Origin() {}

    static String of(Class<?> type) {
        CodeSource source = type.getProtectionDomain().getCodeSource();
        String location = source == null || source.getLocation() == null
                ? ""
                : path(source.getLocation().toString());
        if (!type.getModule().isNamed()) {
            return location.isEmpty() ? UNKNOWN : location;
        }
        String module = "module " + type.getModule().getName();
        return location.isEmpty() || location.startsWith("jrt:") ? module : module + " (" + location + ")";
    }

    /// Returns the place that contains a file of `META-INF/services/`.
    static String ofServicesFile(URL file, String resource) {
        String text = file.toString();
        String place = text.endsWith(resource) ? text.substring(0, text.length() - resource.length()) : text;
        return path(place.startsWith("jar:") && place.endsWith("!/") ? place.substring(4, place.length() - 2) : place);
    }

    private static String path(String location) {
        if (!location.startsWith("file:")) {
            return location;
        }
        try {
            return Path.of(new URI(location)).normalize().toString();
        } catch (URISyntaxException | IllegalArgumentException e) {
            return location;
        }
    }
}
