// Package extract takes the main text out of HTML pages: what a reader came for, without menus, link lists and notices.
//
// The method is jusText's (Pomikálek, Removing Boilerplate and Duplicate Content from Web Corpora, thesis, Masaryk University
// 2011, chapter 3), in its language-independent mode. Block elements and double line breaks cut a page into paragraphs. Each
// has a class by itself, from its length in characters and the share of them in links:
//
//	bad       over 0.2 in links, or a ©, or under 70 characters with a link
//	short     under 70 characters
//	neargood  70 to 200 characters
//	good      over 200 characters
//
// Then context decides: what is short takes the class of the good or bad paragraphs around it, and between a good and a bad one
// is good if a neargood one stands towards the bad one; what is neargood is bad only between two bad ones; a short heading is
// good if a good paragraph begins within 200 characters behind it. The good ones are the text.
//
// jusText's other test, that a third of the words are stop words, is left out, for it takes a list for each language: what has
// long paragraphs and few links passes, in no language at all as well, so that filters for language and quality belong
// behind it. Lengths count characters, and the bounds were found for European languages: of scripts that say in 70
// characters what these say in 200, paragraphs of middle length are lost. Not for pages that are forms, tables of numbers or
// poems; and not for forums with short posts, of which much is lost.
//
// What differs from the Python program on purpose:
//   - <nav>, <footer>, <aside> and <dialog> are dropped: their authors say that they are not the main text. So are
//     <noscript>, <template>, <svg>, and what stands for media that cannot be shown. (Both drop <script>, <style>, <button>,
//     <select>, <textarea> and the head.)
//   - The block elements of HTML 5, such as <section>, <article> and <figure>, cut paragraphs too, and <form>, <hr>.
//   - White space between inline elements stays: <b>a</b> <i>b</i> is "a b", there "ab".
//   - <a> is a link only with href.
//   - Short headings near good text become neargood at first, as the thesis has it; there a slip keeps that step from working,
//     though the last step mostly makes up for it.
//
// The text: paragraphs are parted by blank lines, items of lists and cells of tables by line ends. White space is
// collapsed, but kept in <pre>; <br> is a line end. The title is not in it. NUL bytes are dropped, entities are decoded.
//
// The character set is UTF-8 if nine tenths of the bytes that are not ASCII say so, else that of the byte order mark, the
// Content-Type, <meta> in the first 1024 bytes, else windows-1252, as in browsers. Broken UTF-8 passes as it is.
//
// No tree is built: of open elements at most 512 are remembered, and only those that matter here. Memory is the text of the
// page and its longest tag or script, twice while they grow, and 24 bytes for each paragraph; time is linear in the page.
//
// Start at text.go; paragraphs.go, elements.go and words.go divide a page, classify.go decides, charset.go decodes.
package extract
