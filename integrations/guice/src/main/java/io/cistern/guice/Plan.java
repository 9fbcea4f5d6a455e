package io.cistern.guice;

import io.cistern.cuda.CudaDriver;
import java.util.List;
import java.util.Optional;

/// What a module was told.
///
/// @param driver what device memory is opened on; empty for the process's own
/// @param current the allocator to make current
/// @param pools the pools to open
/// @param source where the module was made
record Plan(
        Optional<CudaDriver> driver,
        Optional<Declaration<String>> current,
        List<Declaration<PoolConfiguration>> pools,
        Object source) {}
