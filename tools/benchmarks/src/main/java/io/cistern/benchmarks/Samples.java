package io.cistern.benchmarks;

import java.util.Collection;
import java.util.stream.DoubleStream;

/// The times that the rounds of a measurement took.
public final class Samples {
    private final double[] sorted;

    public Samples(Collection<Double> rounds) {
        sorted = rounds.stream().mapToDouble(Double::doubleValue).sorted().toArray();
    }

    /// Returns the samples in another unit.
    public Samples times(double factor) {
        return new Samples(
                DoubleStream.of(sorted).map(each -> each * factor).boxed().toList());
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
