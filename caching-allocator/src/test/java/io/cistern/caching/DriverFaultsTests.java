package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Every driver call that [a program][FaultProgram] has an allocator make fails, once and from then on, at its first,
/// a middle and its last time: nothing is lost, nothing is counted wrongly, and the next allocation works.
final class DriverFaultsTests {
    private static final int ALWAYS = Integer.MAX_VALUE;
    private static final Set<DriverCall> UNDO =
            EnumSet.of(DriverCall.MEM_UNMAP, DriverCall.MEM_RELEASE, DriverCall.MEM_FREE, DriverCall.EVENT_DESTROY);
    private static final List<String> SPECS = List.of(
            "caching",
            "caching:reuse=wait",
            "caching:source=linear",
            "caching:source=pages,expandable_segments=false",
            "caching:check=checked");

    /// What happens without faults.
    private record Sound(Map<DriverCall, Integer> toItsEnd, Map<DriverCall, Integer> withClosing) {
        static Sound of(String spec) {
            FaultProgram program = new FaultProgram(spec);
            Map<DriverCall, Integer> before = calls(program);
            program.run();
            assertThat(program.refused()).as("memory ran out").isPositive();
            Map<DriverCall, Integer> toItsEnd = minus(calls(program), before);
            program.freeAll();
            program.close();
            Map<DriverCall, Integer> withClosing = minus(calls(program), before);
            program.checkNothingIsMisused();
            program.checkAllIsBack();
            return new Sound(toItsEnd, withClosing);
        }

        private static Map<DriverCall, Integer> calls(FaultProgram program) {
            Map<DriverCall, Integer> calls = new EnumMap<>(DriverCall.class);
            for (DriverCall call : DriverCall.values()) {
                calls.put(call, (int) program.gpu.calls().of(call));
            }
            return calls;
        }

        private static Map<DriverCall, Integer> minus(Map<DriverCall, Integer> calls, Map<DriverCall, Integer> before) {
            before.forEach((call, count) -> calls.merge(call, -count, Integer::sum));
            calls.keySet().removeAll(FaultProgram.OWN);
            calls.values().removeIf(count -> count == 0);
            return calls;
        }
    }

    private static TreeSet<Integer> positions(int count) {
        return new TreeSet<>(List.of(0, count / 2, count - 1));
    }

    static List<Arguments> faultsOfTheProgram() {
        List<Arguments> faults = new ArrayList<>();
        for (String spec : SPECS) {
            Sound.of(spec).toItsEnd.forEach((call, count) -> add(faults, spec, call, positions(count)));
        }
        return faults;
    }

    static List<Arguments> faultsOfClosing() {
        List<Arguments> faults = new ArrayList<>();
        for (String spec : SPECS) {
            Sound sound = Sound.of(spec);
            sound.withClosing.forEach((call, count) -> {
                int closing = count - sound.toItsEnd.getOrDefault(call, 0);
                if (closing > 0) {
                    add(faults, spec, call, positions(closing));
                }
            });
        }
        return faults;
    }

    private static void add(List<Arguments> faults, String spec, DriverCall call, TreeSet<Integer> positions) {
        for (int after : positions) {
            for (CudaResult result : List.of(CudaResult.UNKNOWN, CudaResult.OUT_OF_MEMORY)) {
                faults.add(arguments(spec, call, after, 1, result));
                faults.add(arguments(spec, call, after, ALWAYS, result));
            }
        }
    }

    @ParameterizedTest(name = "{0}: {1} after {2}, {3} times, {4}")
    @MethodSource("faultsOfTheProgram")
    void nothingIsLostWhereverTheDriverFails(String spec, DriverCall call, int after, int times, CudaResult result) {
        FaultProgram program = new FaultProgram(spec);
        program.gpu.faults().failOn(call, after, times, result);
        program.run();
        program.gpu.faults().clear();
        program.checkAfterwards();
        program.freeAll();
        program.trimAll();
        program.close();
        program.checkNothingIsMisused();
        program.checkAllIsBack();
    }

    static List<Arguments> faultsWithTheirUndo() {
        List<Arguments> faults = new ArrayList<>();
        for (String spec : SPECS) {
            Map<DriverCall, Integer> calls = Sound.of(spec).toItsEnd;
            Set<DriverCall> undone = EnumSet.copyOf(calls.keySet());
            undone.retainAll(UNDO);
            calls.forEach((call, count) -> undone.forEach(undo -> {
                if (call != undo) {
                    positions(count).forEach(after -> faults.add(arguments(spec, call, after, undo)));
                }
            }));
        }
        return faults;
    }

    /// A call fails once, and the driver takes nothing back all the while.
    @ParameterizedTest(name = "{0}: {1} after {2}, and {3}")
    @MethodSource("faultsWithTheirUndo")
    void nothingIsLostWhereTheUndoFailsToo(String spec, DriverCall call, int after, DriverCall undo) {
        FaultProgram program = new FaultProgram(spec);
        program.gpu.faults().failOn(call, after, 1, CudaResult.UNKNOWN);
        program.gpu.faults().failOn(undo, 0, ALWAYS, CudaResult.UNKNOWN);
        program.run();
        program.gpu.faults().clear();
        program.checkAfterwards();
        program.freeAll();
        program.trimAll();
        program.close();
        program.checkNothingIsMisused();
        program.checkAllIsBack();
    }

    /// What is refused again and again at the very end stays with the driver, which nobody asks any more.
    @ParameterizedTest(name = "{0}: {1} after {2}, {3} times, {4}")
    @MethodSource("faultsOfClosing")
    void closingGivesBackWhatItCan(String spec, DriverCall call, int after, int times, CudaResult result) {
        FaultProgram program = new FaultProgram(spec);
        program.run();
        program.freeAll();
        program.gpu.faults().failOn(call, after, times, result);
        program.close();
        program.checkNothingIsMisused();
        if (times == 1) {
            program.checkAllIsBack();
        }
    }

    @Test
    void theProgramLeavesNoCallOut() {
        Set<DriverCall> ofPages = EnumSet.of(
                DriverCall.CONTEXT_SYNCHRONIZE,
                DriverCall.MEM_GET_INFO,
                DriverCall.MEM_ADDRESS_RESERVE,
                DriverCall.MEM_ADDRESS_FREE,
                DriverCall.MEM_CREATE,
                DriverCall.MEM_RELEASE,
                DriverCall.MEM_MAP,
                DriverCall.MEM_UNMAP,
                DriverCall.MEM_SET_ACCESS,
                DriverCall.MEM_GET_ALLOCATION_GRANULARITY,
                DriverCall.STREAM_QUERY,
                DriverCall.STREAM_WAIT_EVENT,
                DriverCall.STREAM_GET_FLAGS,
                DriverCall.CONTEXT_RECORD_EVENT,
                DriverCall.EVENT_CREATE,
                DriverCall.EVENT_RECORD,
                DriverCall.EVENT_QUERY,
                DriverCall.EVENT_SYNCHRONIZE,
                DriverCall.EVENT_DESTROY);
        assertThat(Sound.of("caching").withClosing.keySet()).containsAll(ofPages);
        assertThat(Sound.of("caching:source=linear").withClosing.keySet())
                .contains(DriverCall.MEM_ALLOC, DriverCall.MEM_FREE);
        assertThat(Sound.of("caching:check=checked").withClosing.keySet()).contains(DriverCall.STREAM_GET_ID);
    }
}
