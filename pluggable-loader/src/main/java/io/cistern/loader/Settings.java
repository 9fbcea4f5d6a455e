package io.cistern.loader;

import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Where a person can name the current allocator from outside the program. A blank value counts as not set, since
/// that is how a script takes a variable back.
///
/// @param properties the system properties by name
/// @param variables the environment variables by name
record Settings(Function<String, @Nullable String> properties, Function<String, @Nullable String> variables) {
    static Settings ofProcess() {
        return new Settings(System::getProperty, System::getenv);
    }

    Optional<String> property(String name) {
        return Optional.ofNullable(properties.apply(name)).filter(value -> !value.isBlank());
    }

    Optional<String> variable(String name) {
        return Optional.ofNullable(variables.apply(name)).filter(value -> !value.isBlank());
    }
}
