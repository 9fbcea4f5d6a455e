package io.cistern.caching.internal.base;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/// Two threads count under a [ShortLock], in a plain field: each has a number of its own.
@JCStressTest
@Outcome(id = "1, 2, 2", expect = ACCEPTABLE, desc = "the first came first")
@Outcome(id = "2, 1, 2", expect = ACCEPTABLE, desc = "the second came first")
@Outcome(expect = FORBIDDEN, desc = "both were inside, or one did not see the other's")
@State
public class CountedTogether {
    private final ShortLock lock = new ShortLock();
    private int count;

    private int next() {
        lock.lock();
        try {
            return ++count;
        } finally {
            lock.unlock();
        }
    }

    @Actor
    public void first(III_Result result) {
        result.r1 = next();
    }

    @Actor
    public void second(III_Result result) {
        result.r2 = next();
    }

    @Arbiter
    public void afterwards(III_Result result) {
        result.r3 = count;
    }
}
