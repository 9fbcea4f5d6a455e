package io.cistern.testkit;

class LinearSourceConformanceTests extends SegmentSourceConformance {
    @Override
    protected String spec() {
        return "linear";
    }
}
