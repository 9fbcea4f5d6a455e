package io.cistern.spring;

import java.util.Locale;
import java.util.Map;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.core.env.ConfigurableEnvironment;

/// Finds Cistern's settings among the properties of a Spring application.
final class SpringSettings {
    static final String SLOW_ALLOCATIONS = "cistern.metrics.slow-allocations";

    private static final String PREFIX = "cistern.";
    private static final String OURS = "metrics.";

    private SpringSettings() {}

    /// Makes the settings system properties. Existing properties and environment variables win,
    /// as in Spring's order.
    static void apply(ConfigurableEnvironment environment) {
        Map<String, String> set = Binder.get(environment)
                .bind("cistern", Bindable.mapOf(String.class, String.class))
                .orElseGet(Map::of);
        set.forEach((key, value) -> {
            if (!key.startsWith(OURS) && !isSet(PREFIX + key)) {
                System.setProperty(PREFIX + key, value);
            }
        });
    }

    private static boolean isSet(String key) {
        return System.getProperty(key) != null
                || System.getenv(key.toUpperCase(Locale.ROOT).replace('.', '_').replace('-', '_')) != null;
    }
}
