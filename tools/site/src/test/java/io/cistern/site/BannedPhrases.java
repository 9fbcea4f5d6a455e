package io.cistern.site;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// What pages and messages do not say: clauses without an actor, words of the project's own, turns that read as
/// translated, and words that boast.
final class BannedPhrases {
    /// With what to say instead.
    private static final Map<String, String> PHRASES = Map.ofEntries(
            Map.entry("in the end(?=[.,;)]|$)", "say when"),
            Map.entry("all the same(?=[.,;)]|$)", "still"),
            Map.entry("as the other(?: one)?(?=[.,;)]|$)", "say which"),
            Map.entry(
                    "(?<=^|[.;:,] |and |but )[Ww]ho (?!is |are |may |can |has |have |does |holds |asks? )[a-z]+s (?!.*\\?)",
                    "a noun: the thread that …"),
            Map.entry("(?<=^|[.;] )[Ww]hat [a-z]+ed (?!.*\\?)", "a noun"),
            Map.entry("is none(?=[.,;)])", "say what it is"),
            Map.entry("\\bis none of\\b", "is not one of"),
            Map.entry("(?<!here )\\bis no (?!longer|more|higher|lower)", "is not a"),
            Map.entry("\\b[Ll]anes?\\b(?!: an element| of 4)", "thread cache, thread counters"),
            Map.entry("\\b[Dd]epots?\\b", "transfer cache"),
            Map.entry("\\b[Ll]adders?\\b|\\b[Rr]ungs?\\b", "reclaim steps"),
            Map.entry("\\b[Hh]eirs?\\b|\\binherits?\\b", "recycled shard; takes over"),
            Map.entry("\\blent page", "aliased page"),
            Map.entry("\\b(?:has|have) not got\\b", "lacks"),
            Map.entry("\\bin place of\\b|\\bin whose place\\b", "instead of"),
            Map.entry("\\b(?:is|are|was|were|be) told\\b", "gets; is notified; say what is called"),
            Map.entry("\\btells? (?:the|which|how|of|nobody|that|whether|what|why)\\b", "says, shows, reports"),
            Map.entry("\\b(?:[Ss]omebody|[Aa]nybody|[Ww]hoever)\\b", "name the actor"),
            Map.entry("\\bmend(?:s|ed)?\\b", "fix"),
            Map.entry("(?<!, )\\bso (?:many|much)\\b(?! that)", "that many"),
            Map.entry("\\bas ever\\b|\\b(?:is|are) had\\b|\\bto be had\\b", "nothing; is available"),
            Map.entry("\\btorn\\b", "fragmented"),
            Map.entry("\\bgives? (?:the device )?work\\b", "launches"),
            Map.entry("\\b(?:stands?|stood) (?:in|on|at|before|there|under|behind)\\b", "is, is in"),
            Map.entry("\\bcomes? again\\b|\\bcome again\\b", "is reused, recurs"),
            Map.entry("\\bwants (?:again|to take|a)\\b", "needs"),
            Map.entry("\\bsettles?\\b|\\bsettled\\b", "processes, finishes, publishes"),
            Map.entry("\\bfor ever\\b", "forever"),
            Map.entry("\\bspoil(?:s|t|ed)?\\b", "corrupts"),
            Map.entry("\\bby way of\\b", "through"),
            Map.entry("\\blegal\\b", "valid"),
            Map.entry("\\bbeside\\b", "next to, with, while, against"),
            Map.entry("\\banew\\b|\\bin vain\\b|\\bin turns\\b", "again; without success; alternately"),
            Map.entry("\\bwithout end\\b", "endlessly, without bound"),
            Map.entry("\\b(?:to|at) rest\\b|\\brests\\b", "reaches a steady state, is idle, pauses"),
            Map.entry("\\bcomes? free\\b", "is freed"),
            Map.entry("\\bany more\\b", "no longer"),
            Map.entry("\\b(?:an)?other [a-z]+ than\\b", "other than"),
            Map.entry("\\b(?:on|needs|has) (?:\\S+ ){1,3}alone\\b", "only"),
            Map.entry("\\bas the driver (?:says|tells)\\b", "reported by the driver"),
            Map.entry("\\bof other device memory\\b", "belongs to another DeviceMemory"),
            Map.entry(
                    "\\b(?:of|from) (?:Cistern|PyTorch|RMM|JCuda|JavaCPP)'s(?=[.,;:)]|$)", "the name before the noun"),
            Map.entry("\\b[Ss]ituations\\b(?! \\()", "scenarios, seeded programs"),
            Map.entry(
                    "\\b(?:simply|obviously|easily|of course|blazing|seamless(?:ly)?|robust|powerful)\\b", "nothing"));

    private BannedPhrases() {}

    /// Returns each phrase that a piece of prose has, with what to say instead.
    static List<String> in(String prose) {
        List<String> found = new ArrayList<>();
        PHRASES.forEach((phrase, instead) ->
                matches(phrase, prose).forEach(match -> found.add("\"" + match + "\": " + instead + " — " + prose)));
        return found;
    }

    private static Stream<String> matches(String phrase, String prose) {
        return Pattern.compile(phrase).matcher(prose).results().map(MatchResult::group);
    }
}
