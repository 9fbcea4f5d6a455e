package io.cistern.nccl;

import io.cistern.testkit.SegmentSourceConformance;

class NcclSourceConformanceTests extends SegmentSourceConformance {
    @Override
    protected String spec() {
        return "nccl";
    }
}
