package io.cistern.caching;

import io.cistern.caching.options.CachingOption;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.options.AllocatorOptions;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Reads options from a spec, and those of PyTorch also from a PyTorch string inside it.
final class OptionReader {
    private final AllocatorOptions own;
    private final @Nullable PyTorchString pytorch;

    /// Reads from a spec's options.
    ///
    /// @throws ConfigurationException if a PyTorch string in it does not follow the grammar
    OptionReader(AllocatorOptions options) {
        this.own = options;
        this.pytorch = PyTorchString.of(options).orElse(null);
    }

    /// Whether a PyTorch string asks for the driver's pool.
    boolean choosesDriverPool() {
        return pytorch != null && pytorch.choosesDriverPool();
    }

    /// The value of an option, or what holds without one.
    <T> T value(CachingOption<T> option, T usual) {
        T value = value(option);
        return value != null ? value : usual;
    }

    /// The key of the first of some options that is given, or null.
    @Nullable
    String firstGiven(List<CachingOption<?>> options) {
        return options.stream()
                .filter(option -> value(option) != null)
                .findFirst()
                .map(CachingOption::key)
                .orElse(null);
    }

    /// The value of an option, or null.
    ///
    /// @throws ConfigurationException if it is illegal, or given in both places
    <T> @Nullable T value(CachingOption<T> option) {
        Optional<T> given = option.read(own);
        if (pytorch == null || !CachingOption.PYTORCH.contains(option)) {
            return given.orElse(null);
        }
        Optional<T> inner = option.read(pytorch.options());
        if (given.isPresent() && inner.isPresent()) {
            throw new ConfigurationException(
                    "caching: option '" + option + "' is given by itself and in the PyTorch string; give it once");
        }
        return given.or(() -> inner).orElse(null);
    }
}
