package io.cistern.caching.internal.base;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A list whose room is reserved beforehand: so [#add] needs no memory of the Java heap, and what it is told is not
/// lost where there is none.
///
/// Guarded by whatever guards the owner.
public final class ReservedList<T> {
    private @Nullable Object[] elements = {};
    private int size;

    public void reserve(int more) {
        if (size + more > elements.length) {
            elements = Arrays.copyOf(elements, Math.max(size + more, elements.length * 2));
        }
    }

    /// Adds one at the end, for which there is room.
    public void add(T element) {
        elements[size++] = element;
    }

    public int size() {
        return size;
    }

    @SuppressWarnings({"unchecked", "NullAway"}) // Those below the size are there.
    public T get(int i) {
        return (T) elements[i];
    }

    public void set(int i, T element) {
        elements[i] = element;
    }

    /// Takes all out from one on.
    public void truncate(int from) {
        Arrays.fill(elements, from, size, null);
        size = from;
    }

    /// Takes one out; the last takes its place.
    public void removeAt(int i) {
        elements[i] = elements[--size];
        elements[size] = null;
    }

    /// Takes one out, if it is there; those after it move up.
    @SuppressWarnings("ReferenceEquality") // They are places and streams, each of which there is once.
    public void remove(T element) {
        for (int i = 0; i < size; i++) {
            if (elements[i] == element) {
                System.arraycopy(elements, i + 1, elements, i, size - i - 1);
                elements[--size] = null;
                return;
            }
        }
    }

    @SuppressWarnings("ReferenceEquality")
    public boolean contains(T element) {
        for (int i = 0; i < size; i++) {
            if (elements[i] == element) {
                return true;
            }
        }
        return false;
    }

    public List<T> copy() {
        List<T> copy = new ArrayList<>(size);
        for (int i = 0; i < size; i++) {
            copy.add(get(i));
        }
        return copy;
    }
}
