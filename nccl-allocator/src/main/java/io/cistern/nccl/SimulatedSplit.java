package io.cistern.nccl;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/// One split of a clique, under way until all ranks have named their color. Guarded by the old clique.
final class SimulatedSplit {
    /// The place of a rank in its new clique.
    record Place(SimulatedClique clique, int rank) {}

    private record Wish(int oldRank, int color, int key) {}

    private final int[] devices;
    private final List<Wish> wishes = new ArrayList<>();
    private final Map<Integer, Place> places = new HashMap<>();

    SimulatedSplit(int... devices) {
        this.devices = devices;
    }

    void wish(int oldRank, int color, int key) {
        wishes.add(new Wish(oldRank, color, key));
    }

    boolean isComplete() {
        return wishes.size() == devices.length;
    }

    /// Creates the new cliques: the ranks of a color, ordered by key and then by old rank.
    void decide(SimulatedStaging staging) {
        Map<Integer, List<Wish>> byColor = new TreeMap<>();
        wishes.stream()
                .filter(wish -> wish.color >= 0)
                .sorted(Comparator.comparingInt(Wish::key).thenComparingInt(Wish::oldRank))
                .forEach(wish -> byColor.computeIfAbsent(wish.color, _ -> new ArrayList<>())
                        .add(wish));
        for (List<Wish> members : byColor.values()) {
            SimulatedClique clique = new SimulatedClique(
                    staging,
                    members.stream().mapToInt(wish -> devices[wish.oldRank]).toArray());
            for (int i = 0; i < members.size(); i++) {
                places.put(members.get(i).oldRank, new Place(clique, i));
            }
        }
    }

    Optional<Place> rank(int oldRank) {
        return Optional.ofNullable(places.get(oldRank));
    }
}
