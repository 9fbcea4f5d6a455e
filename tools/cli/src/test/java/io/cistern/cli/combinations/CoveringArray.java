package io.cistern.cli.combinations;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.function.BiPredicate;
import org.jspecify.annotations.Nullable;

/// Draws rows of values so that each two values of different axes that go together meet in a row.
///
/// Greedy: a row begins with a pair that no row has yet. Each other axis, in random order, takes the value that meets
/// the most values for the first time.
final class CoveringArray {
    private final List<Class<? extends Enum<?>>> axes;
    private final BiPredicate<Enum<?>, Enum<?>> together;
    private final Random random;

    private record Pair(Enum<?> one, Enum<?> other) {}

    private CoveringArray(List<Class<? extends Enum<?>>> axes, BiPredicate<Enum<?>, Enum<?>> together, Random random) {
        this.axes = axes;
        this.together = together;
        this.random = random;
    }

    /// @param axes at least two; each two values that go together must be part of some row
    /// @param together whether two values of different axes go together
    static List<List<Enum<?>>> rows(
            List<Class<? extends Enum<?>>> axes, BiPredicate<Enum<?>, Enum<?>> together, long seed) {
        return new CoveringArray(axes, together, new Random(seed)).rows();
    }

    private List<List<Enum<?>>> rows() {
        Set<Pair> open = pairs();
        List<List<Enum<?>>> rows = new ArrayList<>();
        while (!open.isEmpty()) {
            Pair first = open.iterator().next();
            @Nullable Enum<?>[] row = new Enum<?>[axes.size()];
            row[axis(first.one)] = first.one;
            row[axis(first.other)] = first.other;
            if (!isComplete(row, open, order())) {
                throw new IllegalArgumentException(first + " is part of no row");
            }
            List<Enum<?>> complete = List.of(row);
            complete.forEach(one -> complete.forEach(other -> open.remove(new Pair(one, other))));
            rows.add(complete);
        }
        return rows;
    }

    private Set<Pair> pairs() {
        List<Pair> pairs = new ArrayList<>();
        for (int i = 0; i < axes.size(); i++) {
            for (int j = i + 1; j < axes.size(); j++) {
                for (Enum<?> one : axes.get(i).getEnumConstants()) {
                    for (Enum<?> other : axes.get(j).getEnumConstants()) {
                        if (together.test(one, other)) {
                            pairs.add(new Pair(one, other));
                        }
                    }
                }
            }
        }
        Collections.shuffle(pairs, random);
        return new LinkedHashSet<>(pairs);
    }

    private List<Integer> order() {
        List<Integer> order = new ArrayList<>();
        for (int axis = 0; axis < axes.size(); axis++) {
            order.add(axis);
        }
        Collections.shuffle(order, random);
        return order;
    }

    private int axis(Enum<?> value) {
        return axes.indexOf(value.getDeclaringClass());
    }

    /// Fills the axes of `left` that have no value yet; goes back where none fits.
    private boolean isComplete(@Nullable Enum<?>[] row, Set<Pair> open, List<Integer> left) {
        if (left.isEmpty()) {
            return true;
        }
        List<Integer> next = left.subList(1, left.size());
        int axis = left.getFirst();
        if (row[axis] != null) {
            return isComplete(row, open, next);
        }
        List<Enum<?>> values = new ArrayList<>(Arrays.asList(axes.get(axis).getEnumConstants()));
        values.removeIf(value -> !fits(value, row));
        Collections.shuffle(values, random);
        values.sort((one, other) -> Integer.compare(gain(other, row, open), gain(one, row, open)));
        for (Enum<?> value : values) {
            row[axis] = value;
            if (isComplete(row, open, next)) {
                return true;
            }
            row[axis] = null;
        }
        return false;
    }

    private boolean fits(Enum<?> value, @Nullable Enum<?>[] row) {
        for (Enum<?> other : row) {
            if (other != null && !together.test(value, other)) {
                return false;
            }
        }
        return true;
    }

    private static int gain(Enum<?> value, @Nullable Enum<?>[] row, Set<Pair> open) {
        Set<Pair> gained = new HashSet<>();
        for (Enum<?> other : row) {
            if (other != null) {
                gained.add(new Pair(value, other));
                gained.add(new Pair(other, value));
            }
        }
        gained.retainAll(open);
        return gained.size();
    }
}
