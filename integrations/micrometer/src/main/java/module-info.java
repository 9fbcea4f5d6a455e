/// Publishes device memory as meters of Micrometer: [io.cistern.micrometer.DeviceMemoryMetrics].
@org.jspecify.annotations.NullMarked
// The library names its module only in its manifest.
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"})
module io.cistern.micrometer {
    requires static org.jspecify;
    requires transitive io.cistern.api;
    requires transitive micrometer.core;

    exports io.cistern.micrometer;
}
