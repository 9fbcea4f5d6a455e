package io.cistern.loader;

import java.lang.module.InvalidModuleDescriptorException;
import java.util.ServiceConfigurationError;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Describes the problem of a provider in words that follow the provider's name.
final class Problem {
    private static final Pattern CLASS_FILE_VERSION = Pattern.compile("version (\\d{2,3})\\.0");

    /// The class file version of Java N is this number plus N.
    private static final int VERSION_BEFORE_FIRST = 44;

    private Problem() {}

    /// Describes an error of the service loader, without the service's name in front, or of the class
    /// loader.
    static String loading(Throwable error) {
        if (!(error instanceof ServiceConfigurationError)) {
            return "fails to load: " + of(error);
        }
        String message = String.valueOf(error.getMessage());
        String reason = message.startsWith("io.cistern.") ? message.substring(message.indexOf(": ") + 2) : message;
        return "fails to load: " + reason + (error.getCause() == null ? "" : ": " + of(error.getCause()));
    }

    /// Describes an exception; for a class compiled for a later Java, names that version.
    static String of(Throwable thrown) {
        String message = String.valueOf(thrown.getMessage());
        boolean isTooNew = (thrown instanceof UnsupportedClassVersionError && message.contains("more recent version"))
                || (thrown instanceof InvalidModuleDescriptorException && message.contains("major.minor"));
        Matcher version = CLASS_FILE_VERSION.matcher(message);
        return isTooNew && version.find()
                ? "it needs Java " + (Integer.parseInt(version.group(1)) - VERSION_BEFORE_FIRST) + ", and this is Java "
                        + Runtime.version().feature()
                : thrown.toString();
    }
}
