package io.cistern.guice;

import io.cistern.cuda.CudaDriver;
import java.util.List;
import java.util.Optional;

/// Holds the requests that a module collected.
///
/// @param driver the driver to open device memory on; empty for the process's own
/// @param current the allocator to make current
/// @param pools the pools to open
/// @param source the line of the program that made the module
record Plan(
        Optional<CudaDriver> driver,
        Optional<Declaration<String>> current,
        List<Declaration<PoolConfiguration>> pools,
        Object source) {}
