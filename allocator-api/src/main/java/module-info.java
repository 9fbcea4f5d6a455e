/// Pluggable CUDA device-memory allocators: the API for programs ([io.cistern]) and the SPI for plug-ins
/// ([io.cistern.spi]).
@org.jspecify.annotations.NullMarked
@SuppressWarnings("module") // the modules below are compiled after this one
module io.cistern.api {
    requires static org.jspecify;
    requires transitive io.cistern.cuda;

    exports io.cistern;
    exports io.cistern.diagnostics;
    exports io.cistern.errors;
    exports io.cistern.graph;
    exports io.cistern.spi;
    exports io.cistern.spi.catalog;
    exports io.cistern.spi.options;
    exports io.cistern.internal.direct to
            io.cistern.async;
    exports io.cistern.internal.leaks to
            io.cistern.buffers;
    exports io.cistern.internal.names to
            io.cistern.adaptors,
            io.cistern.async,
            io.cistern.buffers,
            io.cistern.caching,
            io.cistern.cli,
            io.cistern.guice,
            io.cistern.handles,
            io.cistern.hazards,
            io.cistern.jcuda,
            io.cistern.loader,
            io.cistern.nccl,
            io.cistern.observability,
            io.cistern.pressure,
            io.cistern.spring,
            io.cistern.torch;
    exports io.cistern.internal.options to
            io.cistern.cli;
    exports io.cistern.internal.order to
            io.cistern.async,
            io.cistern.buffers,
            io.cistern.nccl;
    exports io.cistern.internal.threads to
            io.cistern.caching,
            io.cistern.nccl,
            io.cistern.pressure;
    exports io.cistern.internal.routing to
            io.cistern.buffers;

    uses io.cistern.ModuleSupport.Observer;
    uses io.cistern.cuda.CudaDriverProvider;
    uses io.cistern.spi.catalog.CatalogProvider;

    provides io.cistern.spi.AllocatorProvider with
            io.cistern.internal.direct.DirectProvider;
    provides io.cistern.spi.SegmentSourceProvider with
            io.cistern.internal.direct.DriverSource.Linear,
            io.cistern.internal.direct.DriverSource.Managed,
            io.cistern.internal.direct.DriverSource.Pages;
}
