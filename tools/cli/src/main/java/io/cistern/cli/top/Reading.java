package io.cistern.cli.top;

import io.cistern.observability.MemoryFigures;

/// The figures of one device memory, read from the watched program's bean.
///
/// @param memory the bean's name
record Reading(String memory, MemoryFigures figures) {}
