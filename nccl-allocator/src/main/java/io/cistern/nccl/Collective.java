package io.cistern.nccl;

/// One call that moves data between ranks.
///
/// @param kind the kind of the call
/// @param send the address of this rank's input, or 0
/// @param receive the address of this rank's result, or 0
/// @param count the number of elements, as NCCL counts them for this kind
/// @param type the type of the elements
/// @param op how elements are reduced; sum if the kind reduces nothing
/// @param peer the root or the other rank, if the kind has one
record Collective(Kind kind, long send, long receive, long count, DataType type, ReductionOp op, int peer) {
    /// The kind of a call. The sizes below are in units of `count`, for n ranks.
    enum Kind {
        ALL_REDUCE("allReduce"),
        BROADCAST("broadcast"),
        REDUCE("reduce"),
        /// Each rank sends 1 and receives n.
        ALL_GATHER("allGather"),
        /// Each rank sends n and receives 1.
        REDUCE_SCATTER("reduceScatter"),
        /// Each rank sends n and receives n.
        ALL_TO_ALL("allToAll"),
        SEND("send"),
        RECEIVE("receive");

        private final String text;

        Kind(String text) {
            this.text = text;
        }

        /// Returns the name of the method that users call.
        @Override
        public String toString() {
            return text;
        }
    }

    static Collective moving(Kind kind, long send, long receive, long count, DataType type, int peer) {
        return new Collective(kind, send, receive, count, type, ReductionOp.SUM, peer);
    }

    @Override
    public String toString() {
        return kind + " of " + count + " " + type + ", send=0x" + Long.toHexString(send) + ", receive=0x"
                + Long.toHexString(receive) + ", op=" + op + ", peer=" + peer;
    }
}
