package io.cistern.spark;

import jakarta.servlet.http.HttpServletRequest;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.ui.SparkUITab;
import org.apache.spark.ui.UIUtils$;
import org.apache.spark.ui.WebUIPage;
import scala.Function0;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.xml.Node;
import scala.xml.XML$;

/// The tab "GPU Memory" of Spark's user interface.
final class MemoryTab extends SparkUITab {
    private static final String TITLE = "GPU Memory";

    private MemoryTab(SparkUI ui) {
        super(ui, "gpu-memory");
    }

    static void attach(SparkUI ui, ClusterFigures figures) {
        MemoryTab tab = new MemoryTab(ui);
        tab.attachPage(new Page(tab, figures));
        ui.attachTab(tab);
    }

    @Override
    public String name() {
        return TITLE;
    }

    /// The only page.
    private static final class Page extends WebUIPage {
        private final MemoryTab tab;
        private final ClusterFigures figures;

        Page(MemoryTab tab, ClusterFigures figures) {
            super("");
            this.tab = tab;
            this.figures = figures;
        }

        @Override
        public Seq<Node> render(HttpServletRequest request) {
            Node content = XML$.MODULE$.loadString(new MemoryTables(figures).html());
            Function0<Seq<Node>> nodes = () -> content;
            return UIUtils$.MODULE$.headerSparkPage(request, TITLE, nodes, tab, Option.empty(), false, false);
        }
    }
}
