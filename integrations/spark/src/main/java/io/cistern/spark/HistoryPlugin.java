package io.cistern.spark;

import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.status.AppHistoryServerPlugin;
import org.apache.spark.status.ElementTrackingStore;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.util.kvstore.KVStore;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/// Shows the tab "GPU Memory" of finished applications in Spark's history server, which finds this class by
/// `ServiceLoader` once the module's JAR is on its class path.
///
/// 1. While the history server replays an event log, a listener collects the plug-in's events.
/// 2. At the end of the replay, this class writes them to the application's store, as one
///    [object][KeptFigures].
/// 3. When the history server builds the application's pages, another instance of this class reads the
///    object. An application without such an object gets no tab.
public final class HistoryPlugin implements AppHistoryServerPlugin {
    private static final int MOST_EXECUTORS = 1_000;

    @Override
    public Seq<SparkListener> createListeners(SparkConf conf, ElementTrackingStore store) {
        Reader reader = new Reader();
        store.onFlush(() -> {
            if (reader.hasRead) {
                store.write(new KeptFigures(reader.figures.gone(), reader.figures.leaks()));
            }
            return BoxedUnit.UNIT;
        });
        return CollectionConverters.asScala(List.<SparkListener>of(reader)).toList();
    }

    @Override
    public void setupUI(SparkUI ui) {
        KeptFigures kept;
        try {
            KVStore store = ui.store().store();
            if (store.count(KeptFigures.class) == 0) {
                return;
            }
            kept = store.read(KeptFigures.class, KeptFigures.ID);
        } catch (Exception unreadable) {
            throw new IllegalStateException("can't read the figures of device memory: " + unreadable, unreadable);
        }
        ClusterFigures figures = new ClusterFigures(MOST_EXECUTORS);
        kept.executors.forEach(each -> addEnded(figures, each));
        kept.leaks.forEach(figures::add);
        MemoryTab.attach(ui, figures);
    }

    private static void addEnded(ClusterFigures figures, ExecutorFigures last) {
        figures.update(last);
        figures.removed(last.executorId());
    }

    /// Collects the plug-in's events. Called by one thread.
    private static final class Reader extends SparkListener {
        private final ClusterFigures figures = new ClusterFigures(MOST_EXECUTORS);
        private boolean hasRead;

        @Override
        public void onOtherEvent(SparkListenerEvent event) {
            switch (event) {
                case CisternExecutor ended -> addEnded(figures, ended.last());
                case CisternLeak leaked -> figures.add(leaked.leak());
                default -> {
                    return;
                }
            }
            hasRead = true;
        }
    }
}
