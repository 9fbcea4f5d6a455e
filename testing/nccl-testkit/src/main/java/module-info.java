/// Suites for NCCL that a machine with one or two GPUs runs, and the simulated GPU too.
///
/// Open, since JUnit finds and calls test methods by reflection.
@org.jspecify.annotations.NullMarked
open module io.cistern.nccl.testkit {
    requires static org.jspecify;
    requires transitive io.cistern.nccl;
    requires transitive io.cistern.testkit;
    requires io.cistern.caching;
    requires org.assertj.core;

    exports io.cistern.nccl.testkit;

    provides io.cistern.testkit.GpuSuites with
            io.cistern.nccl.testkit.NcclSuites;
}
