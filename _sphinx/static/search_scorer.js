// How results of a search are ordered. A chapter that says a word often comes before one
// that mentions it, and pages that list words or the library's names come last. The counts
// are in search_words.js, which `_sphinx/ext/finding.py` writes.
const LISTS = ["reference/glossary", "reference/claims", "reference/bibliography",
  "reference/notation", "reference/licences"];

// Of a question, these say nothing of its subject.
stopwords.push("why", "how", "what", "which", "when", "where", "who", "can", "could", "do",
  "does", "did", "i", "my", "me", "we", "our", "you", "your", "am", "get", "gets", "use",
  "using", "from", "than", "should", "would", "have", "has", "about", "so", "one", "many", "need",
  "vs", "versus");

// Whether a chapter's title has what was asked, and as it was written: ZeRO is not zero.
function titled(title, asked) {
  if (!asked || !title.toLowerCase().includes(asked.toLowerCase())) return 0;
  return title.includes(asked) ? 40 : 25;
}

var Scorer = {
  score: ([page, , , , score]) => {
    if (LISTS.includes(page) || page.startsWith("reference/api")) return score - 80;
    const held = window.SEARCH_WORDS, chapter = held ? held.pages.indexOf(page) : -1;
    if (chapter < 0) return score;
    const asked = (new URLSearchParams(location.search).get("q") || "").trim();
    const words = asked.toLowerCase().split(/[^\p{L}\p{N}]+/u)
      .filter((word) => word && !stopwords.includes(word));
    const stem = (word) => held.stems[word] ?? word;
    const named = words.filter((word) => held.asked[chapter].includes(stem(word))).length;
    const often = words.reduce((sum, word) =>
      sum + (held.counts[stem(word)]?.[chapter] ?? 0), 0);
    return score + 10 + titled(held.titles[chapter], asked) +
      (0.3 * often + 32 * named) / (words.length || 1);
  },
  // As Sphinx has them.
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0, title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
