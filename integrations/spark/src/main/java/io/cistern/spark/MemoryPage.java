package io.cistern.spark;

import jakarta.servlet.http.HttpServletRequest;
import org.apache.spark.ui.UIUtils$;
import org.apache.spark.ui.WebUIPage;
import scala.Function0;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.xml.Node;
import scala.xml.XML$;

/// The only page of the tab [MemoryTab].
final class MemoryPage extends WebUIPage {
    private static final String TITLE = "GPU Memory";

    private final MemoryTab tab;
    private final ClusterFigures figures;

    MemoryPage(MemoryTab tab, ClusterFigures figures) {
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
