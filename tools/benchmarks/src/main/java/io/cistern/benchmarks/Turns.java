package io.cistern.benchmarks;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.DoubleSupplier;
import java.util.stream.IntStream;

/// Measures ways to do the same in rounds that take turns, so that a disturbance of the machine meets all of them.
/// The first way is the baseline.
final class Turns {
    private final Map<String, DoubleSupplier> ways = new LinkedHashMap<>();
    private final List<List<Double>> rounds = new ArrayList<>();

    /// @param round does a round and returns what it took
    Turns add(String name, DoubleSupplier round) {
        ways.put(name, round);
        rounds.add(new ArrayList<>());
        return this;
    }

    /// Does the rounds, each of which begins with another way. The warm-ups before do not count.
    Turns run(int warmUps, int count) {
        List<DoubleSupplier> all = List.copyOf(ways.values());
        for (int round = -warmUps; round < count; round++) {
            for (int i = 0; i < all.size(); i++) {
                int way = Math.floorMod(round + i, all.size());
                double taken = all.get(way).getAsDouble();
                if (round >= 0) {
                    rounds.get(way).add(taken);
                }
            }
        }
        return this;
    }

    /// Reports each way in order.
    void each(BiConsumer<String, Samples> report) {
        List<String> names = List.copyOf(ways.keySet());
        for (int way = 0; way < names.size(); way++) {
            report.accept(names.get(way), new Samples(rounds.get(way)));
        }
    }

    double baseline() {
        return new Samples(rounds.getFirst()).median();
    }

    /// Returns the median difference between the rounds of a way and those of the baseline beside them.
    double over(String name) {
        List<Double> own = rounds.get(List.copyOf(ways.keySet()).indexOf(name));
        return new Samples(IntStream.range(0, own.size())
                        .mapToObj(i -> own.get(i) - rounds.getFirst().get(i))
                        .toList())
                .median();
    }
}
