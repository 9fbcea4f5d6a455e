package io.cistern.spark;

import java.util.List;
import org.apache.spark.util.kvstore.KVIndex;

/// Holds what the history server keeps of an application: the last figures of its executors, and its
/// leaks. Spark stores the object by its fields.
public final class KeptFigures {
    static final String ID = "cistern";

    /// The object's key in the application's store, which holds one such object.
    @KVIndex
    public String id = ID;

    /// The last figures of each executor.
    public List<ExecutorFigures> executors = List.of();

    /// The leaks of tasks.
    public List<LeakReport> leaks = List.of();

    /// Creates an empty object for Spark to fill.
    public KeptFigures() {}

    KeptFigures(List<ExecutorFigures> executors, List<LeakReport> leaks) {
        this.executors = executors;
        this.leaks = leaks;
    }
}
