package io.cistern.async;

import io.cistern.testkit.SegmentSourceConformance;

class DriverPoolSourceConformanceTests extends SegmentSourceConformance {
    @Override
    protected String spec() {
        return "driver_pool";
    }
}
