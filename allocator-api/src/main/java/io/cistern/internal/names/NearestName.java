package io.cistern.internal.names;

import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/// Sorts known names by their distance from a mistyped one, the most likely first. Names that contain the
/// mistyped one come before all others.
///
/// The distance of two names is the number of single characters to insert, delete, replace or swap with their
/// neighbour to get from one to the other (optimal string alignment), ignoring case.
public final class NearestName {
    /// More names would hide the likely ones.
    private static final int MOST = 3;

    private NearestName() {}

    /// Returns the known names, the nearest first; equally near ones alphabetically.
    public static List<String> first(String wanted, Collection<String> known) {
        String folded = fold(wanted);
        return known.stream()
                .distinct()
                .sorted(Comparator.comparing((String name) -> !fold(name).contains(folded))
                        .thenComparingInt(name -> distance(folded, fold(name)))
                        .thenComparing(Comparator.naturalOrder()))
                .toList();
    }

    /// Returns the nearest names for a message: `a, b, c, …`, or `none`.
    public static String listed(String wanted, Collection<String> known) {
        List<String> nearest = first(wanted, known);
        return nearest.isEmpty()
                ? "none"
                : String.join(", ", nearest.subList(0, Math.min(MOST, nearest.size())))
                        + (nearest.size() > MOST ? ", …" : "");
    }

    /// Returns the same with a place that lists the others: `a, b, c, … (all: cistern help)`.
    ///
    /// @param where a place that every reader of the message can look up
    public static String listed(String wanted, Collection<String> known, String where) {
        String nearest = listed(wanted, known);
        return nearest.endsWith("…") ? nearest + " (all: " + where + ")" : nearest;
    }

    private static String fold(String name) {
        return name.toLowerCase(Locale.ROOT);
    }

    /// Returns the distance. Three rows of the usual table are enough, since a swap looks two rows back.
    static int distance(String a, String b) {
        int[] before = new int[b.length() + 1];
        int[] above = new int[b.length() + 1];
        int[] row = new int[b.length() + 1];
        for (int j = 0; j <= b.length(); j++) {
            row[j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            int[] free = before;
            before = above;
            above = row;
            row = free;
            row[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                row[j] = cell(a, b, i, j, row, above, before);
            }
        }
        return row[b.length()];
    }

    private static int cell(String a, String b, int i, int j, int[] row, int[] above, int[] before) {
        int replaced = above[j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        int least = Math.min(replaced, Math.min(above[j], row[j - 1]) + 1);
        boolean swapped = i > 1 && j > 1 && a.charAt(i - 1) == b.charAt(j - 2) && a.charAt(i - 2) == b.charAt(j - 1);
        return swapped ? Math.min(least, before[j - 2] + 1) : least;
    }
}
