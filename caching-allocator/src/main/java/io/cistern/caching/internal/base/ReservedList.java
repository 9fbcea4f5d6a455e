package io.cistern.caching.internal.base;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A list whose room is reserved beforehand. [#add] then needs no memory of the Java heap, so no element is
/// lost when the heap is full.
///
/// Guarded in the same way as its owner.
public final class ReservedList<T> {
    private @Nullable Object[] elements = {};
    private int size;

    public void reserve(int more) {
        if (size + more > elements.length) {
            elements = Arrays.copyOf(elements, Math.max(size + more, elements.length * 2));
        }
    }

    /// Adds an element at the end; the caller has [reserved][#reserve] room.
    public void add(T element) {
        elements[size++] = element;
    }

    public int size() {
        return size;
    }

    @SuppressWarnings({"unchecked", "NullAway"}) // elements below `size` are never null
    public T get(int i) {
        return (T) elements[i];
    }

    public void set(int i, T element) {
        elements[i] = element;
    }

    /// Removes all elements from index `from` on.
    public void truncate(int from) {
        Arrays.fill(elements, from, size, null);
        size = from;
    }

    /// Removes an element; the last one takes its place.
    public void removeAt(int i) {
        elements[i] = elements[--size];
        elements[size] = null;
    }

    /// Removes an element, if it is in the list; those after it move up.
    @SuppressWarnings("ReferenceEquality") // elements are places and streams; each exists once
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
