package io.cistern.testkit;

class PagesSourceConformanceTests extends SegmentSourceConformance {
    @Override
    protected String spec() {
        return "pages";
    }
}
