// Package jinja renders the part of Jinja2 that prompts of evaluation tasks use, with the results of Python: {{ … }},
// {% if %}, {% for x in y if z %}, {% set %}, {# … #}, and the dashes that trim white space. An expression has names,
// fields (a.b, a["b"], a[0], a[-1], a[1:3]), texts, numbers, lists, + - * / // % ~, comparisons, in, and, or, not, is,
// `x if y else z`, filters (Filters) and methods (Methods). A name that an item lacks is an error, as under
// StrictUndefined.
//
// Anything else is an *Error with its line. A template is bounded: see limits.go. Start with [Parse] and
// [Template.Render]; lex.go cuts a template, parse.go and expression.go make its tree, eval.go walks it, value.go has
// Python's rules for values. The package imports nothing of this module.
//
// Values are nil, bool, int64, float64, string, []any and map[string]any.
package jinja
