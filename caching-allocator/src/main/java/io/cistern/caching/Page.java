package io.cistern.caching;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/// Physical memory under one handle, and the places where it is mapped.
///
/// Exactly one of its mappings is its *home*: there its bytes are live, free or fenced. At the others, whose
/// mappings are kept so that they can be used again without a driver call, the blocks are [lent][Blocks#LENT].
///
/// **Stream order.** Only idle pages move, and a page moves to another stream only after that stream was made to
/// wait for the one it comes from, or after the latter's fence had passed. So, by induction over its moves, all work
/// that used the page through any mapping comes before a fence recorded on its home's stream while the page is free
/// there.
///
/// Guarded by the lock of the device's [PageTable], as are all mappings.
final class Page {
    /// Why a page must stay where it is.
    enum Pin {
        /// Registered with a network card or a communicator.
        REGISTERED,
        /// Exported to another process.
        EXPORTED,
        /// Its addresses are in a captured graph.
        CAPTURED
    }

    final long handle;
    final long byteSize;
    /// All places, the home among them; the oldest first.
    final List<Mapping> mappings = new ArrayList<>(2);
    final Set<Pin> pins = EnumSet.noneOf(Pin.class);
    Mapping home;

    /// What [Mapping#freedAt] was when the [look][IdlePages] under way came across it.
    long seenFreedAt;
    /// The last [look][IdlePages] that took it.
    long takenIn;
    /// The last search that came across it lent, and at what address.
    long search;
    long searchedAt;

    /// A page with one mapping, its home.
    Page(long handle, long byteSize, PageArena arena, long address) {
        this.handle = handle;
        this.byteSize = byteSize;
        this.home = new Mapping(this, arena, address);
        add(home);
    }

    /// Adds a place.
    ///
    /// @return whether it was none before
    boolean add(Mapping mapping) {
        boolean isNew = !mapping.entered;
        if (isNew) {
            mapping.entered = true;
            mappings.add(mapping);
        }
        return isNew;
    }
}
