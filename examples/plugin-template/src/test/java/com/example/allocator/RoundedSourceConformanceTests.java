package com.example.allocator;

import io.cistern.testkit.SegmentSourceConformance;

/// What every segment source must do, on a simulated GPU.
class RoundedSourceConformanceTests extends SegmentSourceConformance {
    @Override
    protected String spec() {
        return "rounded";
    }
}
