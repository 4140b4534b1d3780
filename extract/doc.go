// Package extract takes the main text out of HTML pages, without menus, link lists and notices.
//
// The method is that of jusText (Pomikálek, Removing Boilerplate and Duplicate Content from Web Corpora, thesis,
// Masaryk University 2011, chapter 3), in its language-independent mode. Block elements and double line breaks divide
// a page into paragraphs. Each paragraph first gets a class from its length in characters and the share of them in
// links:
//
//	bad       over 0.2 in links, or a ©, or under 70 characters with a link
//	short     under 70 characters
//	neargood  70 to 200 characters
//	good      over 200 characters
//
// Then context decides:
//
//   - A short paragraph takes the class of the good or bad paragraphs around it. Between a good and a bad one, it is
//     good if a neargood one stands between it and the bad one.
//   - A neargood paragraph is bad only between two bad ones.
//   - A short heading is good if a good paragraph begins within 200 characters after it.
//
// The text consists of the good paragraphs.
//
// jusText also tests whether a third of the words are stop words. This package omits that test, because it needs a
// word list for each language. Without it, any text with long paragraphs and few links passes, even if it is in no
// language; filter the result by language and quality. Lengths count characters, and the thresholds were found for
// European languages. In scripts that need only 70 characters for what these say in 200, paragraphs of medium length
// are lost. Do not use the package for forms, tables of numbers or poems, nor for forums with short posts, where much
// is lost.
//
// Intended differences from the Python program:
//   - <nav>, <footer>, <aside> and <dialog> are dropped: by definition they are not the main text. <noscript>,
//     <template>, <svg> and the fallback content of media are dropped too. (Both programs drop <script>, <style>,
//     <button>, <select>, <textarea> and the head.)
//   - The block elements of HTML 5, such as <section>, <article> and <figure>, also divide paragraphs, and so do
//     <form> and <hr>.
//   - White space between inline elements is kept: <b>a</b> <i>b</i> gives "a b", not "ab".
//   - <a> is a link only with href.
//   - Short headings near good text first become neargood, as in the thesis. In the program a bug disables that step,
//     though the last step mostly makes up for it.
//
// In the text, blank lines separate paragraphs, and line ends separate list items and table cells. White space is
// collapsed, but kept in <pre>; <br> is a line end. The title is not included. NUL bytes are dropped, and entities
// are decoded.
//
// The character set is UTF-8 if nine tenths of the bytes that are not ASCII are valid UTF-8. Otherwise it is taken
// from the byte order mark, the Content-Type, or <meta> in the first 1024 bytes; the default is windows-1252, as in
// browsers. Invalid UTF-8 passes unchanged.
//
// No tree is built. At most 512 open elements are remembered, and only those that matter here. Memory is the text of
// the page and its longest tag or script, twice while they grow, and 24 bytes for each paragraph. Time is linear in
// the page.
//
// Start at text.go; paragraphs.go, elements.go and words.go divide a page, classify.go classifies, charset.go
// decodes.
package extract
