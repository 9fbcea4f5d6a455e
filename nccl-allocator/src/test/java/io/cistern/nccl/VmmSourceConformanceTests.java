package io.cistern.nccl;

import io.cistern.testkit.SegmentSourceConformance;

class VmmSourceConformanceTests extends SegmentSourceConformance {
    @Override
    protected String spec() {
        return "vmm";
    }
}
