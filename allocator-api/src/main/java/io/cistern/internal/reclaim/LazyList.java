package io.cistern.internal.reclaim;

import java.util.AbstractList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A list that is made once, at the first read: by the reader, or by another thread for which the reader waits.
///
/// **Threads.** Any.
abstract class LazyList<T> extends AbstractList<T> {
    private @Nullable List<T> made;

    abstract List<T> make();

    /// Returns the list, made by the first call; empty if that failed.
    final synchronized List<T> list() {
        List<T> known = made;
        if (known == null) {
            try {
                known = make();
            } catch (RuntimeException unavailable) {
                known = List.of();
            }
            made = known;
        }
        return known;
    }

    @Override
    public final T get(int index) {
        return list().get(index);
    }

    @Override
    public final int size() {
        return list().size();
    }
}
