package io.cistern.caching.internal.compact;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageArena;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.mockito.Mockito;

/// Plans over random pages: each can be carried out, takes what it may, and moves nothing without need.
class CompactionPlanTests {
    private static final long SLOT = 2 << 20;
    private static final int PLANS = 3000;

    private final PageArena arena = Mockito.mock(PageArena.class);
    // How many plans had what.
    private int pagesToReplace;
    private int roomSetFree;
    private int pagesForTheirRoomAlone;

    private SparsePage page(long keptSlots, long freeSlots) {
        SparsePage page = new SparsePage(new Page(0, (keptSlots + freeSlots) * SLOT, arena, 0));
        page.addFree(0, freeSlots * SLOT);
        return page;
    }

    private List<SparsePage> pages(SplittableRandom random) {
        List<SparsePage> pages = new ArrayList<>();
        for (int i = random.nextInt(1, 9); i > 0; i--) {
            pages.add(page(random.nextInt(1, 12), random.nextInt(1, 12)));
        }
        return pages;
    }

    @ParameterizedTest
    @CsvSource({"1, false", "2, true"})
    void aPlanCanBeCarriedOutAndHoldsNoPageInVain(long seed, boolean canUseHost) {
        SplittableRandom random = new SplittableRandom(seed);
        for (int i = 0; i < PLANS; i++) {
            List<SparsePage> all = pages(random);
            long lacking = random.nextInt(8) == 0 ? Long.MAX_VALUE : random.nextInt(1, 40) * SLOT;
            long maxKept = random.nextInt(4) == 0 ? random.nextInt(40) * SLOT : Long.MAX_VALUE;
            long room = random.nextInt(16) * SLOT;
            CompactionPlan plan = CompactionPlan.choose(new ArrayList<>(all), lacking, maxKept, room, canUseHost);
            long largest = all.stream().mapToLong(SparsePage::keptBytes).max().orElseThrow();
            long wanted = lacking == Long.MAX_VALUE ? lacking : lacking + largest;
            String name = "seed %d, plan %d".formatted(seed, i);

            assertThat(plan.keptBytes()).as(name).isLessThanOrEqualTo(maxKept);
            assertThat(isExecutable(plan.pages, plan, room)).as(name).isTrue();
            assertTakesWhatItMay(plan, all, wanted, maxKept, room, name);
            assertHoldsNothingInVain(plan, wanted, room, name);
            assertUsesTheHostIfNeeded(plan, all, lacking, maxKept, canUseHost, name);
        }
        assertThat(pagesToReplace).isGreaterThan(PLANS / 2);
        assertThat(roomSetFree).isGreaterThan(PLANS / 20);
        assertThat(pagesForTheirRoomAlone).isPositive();
    }

    private static boolean isExecutable(List<SparsePage> pages, CompactionPlan plan, long room) {
        long left = room;
        for (SparsePage each : pages) {
            if (!plan.byHost.contains(each) && each.keptBytes() > left) {
                return false;
            }
            left += each.freeBytes();
        }
        return true;
    }

    private void assertTakesWhatItMay(
            CompactionPlan plan, List<SparsePage> all, long wanted, long maxKept, long room, String name) {
        pagesToReplace += plan.pageCount() > 0 ? 1 : 0;
        roomSetFree +=
                plan.pages.stream().anyMatch(each -> !plan.byHost.contains(each) && each.keptBytes() > room) ? 1 : 0;
        if (plan.freeBytes() < wanted) {
            assertThat(all)
                    .as(name + ": pages that would fit and are not in the plan")
                    .noneMatch(each -> !plan.pages.contains(each)
                            && each.keptBytes() <= room + plan.freeBytes()
                            && each.keptBytes() <= maxKept - plan.keptBytes());
        }
    }

    private void assertHoldsNothingInVain(CompactionPlan plan, long wanted, long room, String name) {
        for (SparsePage each : plan.pages) {
            List<SparsePage> others = new ArrayList<>(plan.pages);
            others.remove(each);
            boolean isEnough = plan.freeBytes() - each.freeBytes() >= wanted;
            pagesForTheirRoomAlone += isEnough ? 1 : 0;
            assertThat(isEnough && !plan.byHost.contains(each) && isExecutable(others, plan, room))
                    .as(name + ": a page of %d kept bytes is not needed", each.keptBytes())
                    .isFalse();
        }
    }

    private static void assertUsesTheHostIfNeeded(
            CompactionPlan plan, List<SparsePage> all, long lacking, long maxKept, boolean canUseHost, String name) {
        if (canUseHost && plan.freeBytes() < lacking) {
            assertThat(all)
                    .as(name + ": pages that could go by way of the host")
                    .noneMatch(each -> !plan.pages.contains(each) && each.keptBytes() <= maxKept - plan.keptBytes());
        }
        assertThat(canUseHost || plan.pages.stream().noneMatch(plan.byHost::contains))
                .as(name)
                .isTrue();
    }

    @Test
    void pagesWithTheFewestBytesToCopyForEachFreeByteComeFirst() {
        SparsePage costly = page(4, 4);
        SparsePage cheap = page(1, 4);
        CompactionPlan plan =
                CompactionPlan.choose(new ArrayList<>(List.of(costly, cheap)), 1, Long.MAX_VALUE, 8 * SLOT, false);
        assertThat(plan.pages)
                .as("4 free, as the request and the copy of 4 take: less one")
                .startsWith(cheap);
        assertThat(plan.pageCount()).isEqualTo(2);
        CompactionPlan less = CompactionPlan.choose(
                new ArrayList<>(List.of(page(2, 4), page(1, 4))), 2 * SLOT, Long.MAX_VALUE, 8 * SLOT, false);
        assertThat(less.keptBytes()).as("one is enough").isEqualTo(SLOT);
    }

    @Test
    void theSmallestCopyMakesRoomForTheNextByWayOfTheHost() {
        SparsePage small = page(2, 3);
        SparsePage large = page(3, 9);
        CompactionPlan plan = CompactionPlan.choose(
                new ArrayList<>(List.of(large, small)), Long.MAX_VALUE, Long.MAX_VALUE, SLOT, true);
        assertThat(plan.pages).containsExactly(small, large);
        assertThat(plan.byHost.contains(small)).isTrue();
        assertThat(plan.byHost.contains(large)).isFalse();
    }
}
