package io.cistern.internal.options;

import io.cistern.cuda.settings.ByteSizes;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.NearestName;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.AllocatorSpec;
import io.cistern.spi.options.SpecOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The options of a spec. They record which keys were read, so that an unread key is an error and not
/// ignored.
///
/// Used by one thread at a time, while a provider opens.
public final class SpecOptions implements AllocatorOptions {
    private static final Map<String, Boolean> FLAGS =
            Map.of("true", true, "True", true, "false", false, "False", false);

    private final AllocatorSpec spec;

    /// Null while no device is known.
    private final @Nullable DeviceEnvironment devices;

    /// The options to search for a key that this spec lacks, or null.
    private final @Nullable SpecOptions outer;

    private final Set<String> asked = new TreeSet<>();
    private final Set<String> fromOuter = new TreeSet<>();
    private final List<SpecOptions> nested = new ArrayList<>();

    /// @param devices the devices that shares of memory are of
    public SpecOptions(AllocatorSpec spec, DeviceEnvironment devices) {
        this(spec, devices, null);
    }

    /// Reads options to check their values, while no device is known: any share of a device's memory is
    /// valid.
    SpecOptions(AllocatorSpec spec) {
        this(spec, null, null);
    }

    private SpecOptions(AllocatorSpec spec, @Nullable DeviceEnvironment devices, @Nullable SpecOptions outer) {
        this.spec = spec;
        this.devices = devices;
        this.outer = outer;
    }

    /// Returns the options of a segment source: its own, and those of this spec that were not read until then.
    /// So `caching:source=vmm,location=host_numa` gives `vmm` the options that `caching` does not read.
    public SpecOptions ofSource(AllocatorSpec source) {
        return new SpecOptions(source, devices, this);
    }

    /// Returns the keys that were read.
    public Set<String> asked() {
        return Set.copyOf(asked);
    }

    public String name() {
        return spec.name();
    }

    public String spec() {
        return spec.text();
    }

    /// Called when the provider has opened.
    ///
    /// @throws ConfigurationException if the spec has keys that were not read; the message lists the keys that
    ///     were read, the nearest first
    public void rejectUnread() {
        rejectUnread(List::of);
    }

    /// Called when the provider has opened.
    ///
    /// @param declared the options that the provider declares
    /// @throws ConfigurationException if the spec has keys that were not read. The message lists the keys that
    ///     were read, the nearest first, unless the provider declared the key
    public void rejectUnread(Supplier<? extends List<? extends SpecOption<?>>> declared) {
        List<String> unread = new ArrayList<>(spec.options().keySet());
        unread.removeAll(asked);
        if (!unread.isEmpty()) {
            String first = unread.getFirst();
            if (declared.get().stream().anyMatch(option -> option.key().equals(first))) {
                throw new ConfigurationException("'" + spec.name() + "' declares the option '" + first
                        + "', but did not read it when it was opened (spec " + spec.text() + ")");
            }
            String what = unread.size() == 1 ? "option '" + first + "'" : "options " + quoted(unread);
            String known =
                    asked.isEmpty() ? "it takes none" : "it takes, nearest first: " + NearestName.listed(first, asked);
            throw new ConfigurationException(
                    "'" + spec.name() + "' has no " + what + " (spec " + spec.text() + "); " + known);
        }
        for (SpecOptions inner : nested) {
            inner.rejectUnread();
        }
    }

    @Override
    public Optional<String> text(String key) {
        return Optional.ofNullable(single(key));
    }

    @Override
    public Optional<Long> bytes(String key) {
        String value = single(key);
        try {
            return value == null ? Optional.empty() : Optional.of(ByteSizes.parse(value, () -> deviceBytes(value)));
        } catch (IllegalArgumentException e) {
            throw bad(key, Objects.requireNonNullElse(e.getMessage(), value));
        }
    }

    /// Returns the memory of each device; an option has one value for all of them.
    private long deviceBytes(String share) {
        if (devices == null) {
            return Long.MAX_VALUE;
        }
        long[] sizes = IntStream.range(0, devices.deviceCount())
                .mapToLong(devices::totalBytes)
                .distinct()
                .toArray();
        if (sizes.length != 1) {
            String what = sizes.length == 0 ? "there is no device" : "the devices differ in size";
            throw new IllegalArgumentException(
                    "'" + share + "' is a share of a device, and " + what + "; write a number of bytes such as 8g");
        }
        return sizes[0];
    }

    @Override
    public Optional<Long> number(String key, long least, long most) {
        String value = single(key);
        if (value == null) {
            return Optional.empty();
        }
        try {
            long number = Long.parseLong(value);
            if (number >= least && number <= most) {
                return Optional.of(number);
            }
        } catch (NumberFormatException e) {
            // Rejected below like a number out of range.
        }
        throw bad(key, "'" + value + "' is not a whole number from " + least + " to " + most);
    }

    @Override
    public Optional<Double> fraction(String key) {
        String value = single(key);
        if (value == null) {
            return Optional.empty();
        }
        try {
            double fraction = value.endsWith("%")
                    ? Double.parseDouble(value.substring(0, value.length() - 1)) / 100
                    : Double.parseDouble(value);
            if (fraction >= 0 && fraction <= 1) {
                return Optional.of(fraction);
            }
        } catch (NumberFormatException e) {
            // Answered below like a number out of range.
        }
        throw bad(key, "'" + value + "' is not a fraction from 0 to 1");
    }

    @Override
    public Optional<Boolean> flag(String key) {
        String value = single(key);
        Boolean flag = value == null ? null : FLAGS.get(value);
        if (value != null && flag == null) {
            throw bad(key, "'" + value + "' is neither true nor false");
        }
        return Optional.ofNullable(flag);
    }

    @Override
    public Optional<String> choice(String key, List<String> words) {
        String value = single(key);
        if (value != null && !words.contains(value)) {
            throw bad(
                    key,
                    "'" + value + "' is not one of these, nearest first: "
                            + String.join(", ", NearestName.first(value, words)));
        }
        return Optional.ofNullable(value);
    }

    @Override
    public Optional<List<String>> list(String key) {
        asked.add(key);
        List<String> own = spec.options().get(key);
        if (own != null || outer == null) {
            return Optional.ofNullable(own);
        }
        if (!outer.asked.contains(key)) {
            fromOuter.add(key);
        }
        return fromOuter.contains(key) ? outer.list(key) : Optional.empty();
    }

    @Override
    public Optional<AllocatorOptions> nested(String key) {
        List<String> values = list(key).orElse(null);
        if (values == null) {
            return Optional.empty();
        }
        SpecOptions inner = new SpecOptions(parsed(key, String.join(",", values)), devices, null);
        nested.add(inner);
        return Optional.of(inner);
    }

    private AllocatorSpec parsed(String key, String options) {
        try {
            return AllocatorSpec.parse(key + ":" + options);
        } catch (ConfigurationException e) {
            throw bad(key, "'" + options + "' is not of the form key:value,key:[value,value]");
        }
    }

    /// Returns the one value of a key, or null.
    private @Nullable String single(String key) {
        List<String> values = list(key).orElse(null);
        if (values == null) {
            return null;
        }
        if (values.size() != 1) {
            throw bad(key, "takes one value, not the " + values.size() + " of " + values);
        }
        return values.getFirst();
    }

    private ConfigurationException bad(String key, String what) {
        return new ConfigurationException(
                "option '" + key + "' of '" + spec.name() + "': " + what + " (spec " + spec.text() + ")");
    }

    private static String quoted(List<String> keys) {
        return "'" + String.join("', '", keys) + "'";
    }
}
