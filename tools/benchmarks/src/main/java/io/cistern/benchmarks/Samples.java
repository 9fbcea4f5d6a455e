package io.cistern.benchmarks;

import java.util.Collection;

/// The times that the rounds of a measurement took.
public final class Samples {
    private final double[] sorted;

    public Samples(Collection<Double> rounds) {
        sorted = rounds.stream().mapToDouble(Double::doubleValue).sorted().toArray();
    }

    public int count() {
        return sorted.length;
    }

    public double median() {
        return (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
    }

    /// Returns the value that a share of the rounds do not exceed.
    public double at(double share) {
        return sorted[(int) (share * (sorted.length - 1))];
    }

    public double least() {
        return sorted[0];
    }

    public double most() {
        return sorted[sorted.length - 1];
    }
}
