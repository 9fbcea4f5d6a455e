package io.cistern.nccl;

/// One call that moves data between ranks.
///
/// @param kind which
/// @param send what this rank gives, or 0
/// @param receive where this rank gets the result, or 0
/// @param count elements, as NCCL counts them for this kind
/// @param type what elements are
/// @param op how they are reduced; sum where they are not
/// @param peer the root or the other rank, where the kind has one
record Collective(Kind kind, long send, long receive, long count, DataType type, ReductionOp op, int peer) {
    /// Which call it is. Sizes are in units of `count`, for n ranks.
    enum Kind {
        ALL_REDUCE("allReduce"),
        BROADCAST("broadcast"),
        REDUCE("reduce"),
        /// Gives 1, gets n.
        ALL_GATHER("allGather"),
        /// Gives n, gets 1.
        REDUCE_SCATTER("reduceScatter"),
        /// Gives n, gets n.
        ALL_TO_ALL("allToAll"),
        SEND("send"),
        RECEIVE("receive");

        private final String text;

        Kind(String text) {
            this.text = text;
        }

        /// The name that users call it by.
        @Override
        public String toString() {
            return text;
        }
    }

    static Collective moving(Kind kind, long send, long receive, long count, DataType type, int peer) {
        return new Collective(kind, send, receive, count, type, ReductionOp.SUM, peer);
    }

    /// For people.
    @Override
    public String toString() {
        return kind + " of " + count + " " + type + ", send=0x" + Long.toHexString(send) + ", receive=0x"
                + Long.toHexString(receive) + ", op=" + op + ", peer=" + peer;
    }
}
