package io.cistern.spark;

import org.apache.spark.ui.SparkUI;
import org.apache.spark.ui.SparkUITab;

/// The tab "GPU Memory" of Spark's user interface.
final class MemoryTab extends SparkUITab {
    private MemoryTab(SparkUI ui) {
        super(ui, "gpu-memory");
    }

    static void attach(SparkUI ui, ClusterFigures figures) {
        MemoryTab tab = new MemoryTab(ui);
        tab.attachPage(new MemoryPage(tab, figures));
        ui.attachTab(tab);
    }

    @Override
    public String name() {
        return "GPU Memory";
    }
}
