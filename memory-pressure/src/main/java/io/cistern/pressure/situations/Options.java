package io.cistern.pressure.situations;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDriverProvider;
import io.cistern.cuda.CudaDrivers;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;

/// The options of the command line, in pairs of a name and a value.
record Options(Map<String, String> values) {
    private static final long CAPACITY = 256L << 20;

    static Options parse(String... arguments) {
        if (arguments.length % 2 != 0) {
            throw new IllegalArgumentException("an option without a value: " + List.of(arguments));
        }
        Map<String, String> values = new HashMap<>();
        for (int i = 0; i < arguments.length; i += 2) {
            values.put(arguments[i], arguments[i + 1]);
        }
        return new Options(values);
    }

    int number(String name, int otherwise) {
        return Integer.parseInt(values.getOrDefault(name, Integer.toString(otherwise)));
    }

    long seed() {
        return Long.parseLong(values.getOrDefault("--seed", "1"));
    }

    String allocator() {
        return values.getOrDefault("--allocator", "caching");
    }

    /// Returns the bytes that tasks share; a simulated GPU has exactly these.
    long capacityBytes() {
        return Long.parseLong(values.getOrDefault("--capacity", Long.toString(CAPACITY)));
    }

    CudaDriver openDriver() {
        System.setProperty("cistern.simulated.capacity", Long.toString(capacityBytes()));
        String name = values.getOrDefault("--driver", "simulated");
        CudaDriverProvider found = CudaDrivers.providers().stream()
                .filter(provider -> provider.name().equals(name))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("no driver named " + name));
        found.unavailableBecause().ifPresent(reason -> {
            throw new IllegalStateException("driver " + name + " can't be used here: " + reason);
        });
        return found.open();
    }

    /// Returns a catalog of the providers on the class path.
    static Catalog catalog() {
        return Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class));
    }

    private static <T> List<T> all(Class<T> type) {
        return ServiceLoader.load(type).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }
}
