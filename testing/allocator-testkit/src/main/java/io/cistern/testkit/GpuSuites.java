package io.cistern.testkit;

import java.util.List;

/// Test classes of other modules that [GpuTests] runs when they are named; found by [java.util.ServiceLoader]. They
/// open the [DriverUnderTest].
public interface GpuSuites {
    /// The classes; a suite's name is that of its class.
    List<Class<?>> suites();
}
