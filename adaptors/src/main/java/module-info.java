/// Allocators around other allocators. Each has one concern, and they nest freely: in code by their
/// constructors, which take the upstream first, or in a spec such as `limit:bytes=8GiB,upstream="caching"`.
@org.jspecify.annotations.NullMarked
module io.cistern.adaptors {
    requires static org.jspecify;
    requires transitive io.cistern.api;

    exports io.cistern.adaptors;

    provides io.cistern.spi.AllocatorProvider with
            io.cistern.adaptors.AlignedProvider,
            io.cistern.adaptors.ConfinedProvider,
            io.cistern.adaptors.EventProvider,
            io.cistern.adaptors.LimitProvider,
            io.cistern.adaptors.LoggingProvider,
            io.cistern.adaptors.PrefetchProvider,
            io.cistern.adaptors.RetryProvider,
            io.cistern.adaptors.StatisticsProvider,
            io.cistern.adaptors.TrackingProvider;
}
