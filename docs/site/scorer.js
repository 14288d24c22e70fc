/* What the search shows first: pages whose title has the words that were typed, then those whose headings have them,
   and guides before the reference.

   Sphinx scores a page by its best word, so that every page with one of the words in any heading is as good as the
   page that is about all of them. */
const stems = (text) => splitQuery(text.toLowerCase()).filter((word) => !stopwords.has(word)).map((word) => new Stemmer().stemWord(word));

const share = (words, here) => words.filter(here).length / (words.length || 1);

var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, , , , score, , kind]) => {
    if (kind === "object") return score;
    const asked = stems(new URLSearchParams(window.location.search).get("q") ?? "");
    const number = Search._index.docnames.indexOf(page);
    const title = stems(Search._index.titles[number]);
    const headings = (word) => [Search._index.titleterms[word] ?? []].flat().includes(number);
    return (
      score +
      30 * share(asked, (word) => title.includes(word)) +
      10 * share(asked, headings) +
      share(title, (word) => asked.includes(word)) -
      (page.startsWith("api/") ? 5 : 0)
    );
  },
};
