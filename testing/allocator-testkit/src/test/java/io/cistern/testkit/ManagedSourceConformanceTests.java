package io.cistern.testkit;

class ManagedSourceConformanceTests extends SegmentSourceConformance {
    @Override
    protected String spec() {
        return "managed";
    }
}
