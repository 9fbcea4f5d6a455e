package io.cistern.caching;

import io.cistern.ConfigurationException;
import io.cistern.spi.AllocatorOptions;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Reads options from a spec, and those of PyTorch also from a PyTorch string inside it.
final class OptionReader {
    /// PyTorch's name of its other allocator.
    private static final String DRIVER_POOL = "cudaMallocAsync";

    private final AllocatorOptions own;
    private final @Nullable AllocatorOptions pytorch;

    /// Reads from a spec's options.
    ///
    /// @throws ConfigurationException if a PyTorch string in it does not follow the grammar, or asks for another
    ///     allocator
    OptionReader(AllocatorOptions options) {
        this.own = options;
        this.pytorch = options.nested(CachingOption.PYTORCH_STRING).orElse(null);
        if (pytorch != null) {
            String backend =
                    pytorch.choice("backend", List.of("native", DRIVER_POOL)).orElse("native");
            if (backend.equals(DRIVER_POOL)) {
                throw new ConfigurationException("option 'backend' of 'pytorch': " + DRIVER_POOL
                        + " is the driver's pool, the allocator 'async'; legal for 'caching': native");
            }
        }
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
        Optional<T> inner = option.read(pytorch);
        if (given.isPresent() && inner.isPresent()) {
            throw new ConfigurationException(
                    "caching: option '" + option + "' is given by itself and in the PyTorch string; give it once");
        }
        return given.or(() -> inner).orElse(null);
    }
}
