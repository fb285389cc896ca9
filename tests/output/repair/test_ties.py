"""Texts that two documents explain equally well are refused: one character or token moved."""

import pytest

from bench import repair_edits
from graph_retry.output import parse_output

TIES = {
    # Numbers and the marks beside them.
    "digit-or-brace": '{\n  "a": 1}\n}',  # 10, or a brace too many
    "digit-or-brace-spaced": '{ "a": 6.02e+2} }',
    "point-or-brace": '{"a": {"b": 12.}',
    "point-and-bracket": '{"id": ["]", 1, [.5]}',
    "digit-of-key": "{id3=.14}",
    "sign-or-arrow": '{"a"="x", "b"=>0.5}',
    # Strings and keys.
    "escape-apart": "['5\\_'11\"', None]",
    "key-in-comment": '{ #name": "x"\n, "b": 2}',
    "key-in-comment-single": "{'a': '[', // one\n  {#': -40\n}",
    "string-over-comment": "[' # id\n  3.14,\n  '#7'\n]",
    "comment-in-two": '[\n    "a", //\nok\n]',
    "words-in-numbers": "[\n  true , in EUR\n]",
    "colon-in-key": '{"is-new=""1/2", "b": 1}',
    "backslash-for-colon": '{"k":"{","key:"\\"x","note":"y"}',
    "other-quote": "{a1: 'C++`, b: 10, 'unit price': 3.14}",
    "bare-words": '{qty: blu"}',
    "half-key": "{'ast: {'№': 'z9',}, 'Ünï': {'№': 7}}",
    # Commas and colons.
    "colon-or-bracket": '{ "a":  {}, "x1" [] }',
    "comma-from-tuple": "{'a': (250),, 'b': 1}",
    "comma-before-tuple": "{,'a': (False), 'b': 1}",
    "comma-from-parts": "{'a': {},, 'b': ('No' ':',)}",
    "comma-or-letter": "{\n  ,_2: [\n    'x',\n  ],\n}",
    "colon-or-letter": "{b_:: [1]}",
    "comma-of-word": '{"a": blu,, "b": {}}',
    "brace-between-commas": '{"a": {"b": 1,, "c": 2},}',
    "brace-before-comma": '{"a": {"b": {}, "c": 2}, "d": 0,,}',
    # Brackets.
    "braces-doubled": '[{"a": "0.75"}}',
    "brace-for-value": '{{"a": {}}',
    "brace-for-value-nested": '{{"a": {{"b": {}}}}',
    "brace-for-value-cut": '{\n  "a": {\n    "b": "+1"\n  },\n  "c": {}',
    "braces-and-digit": '[{{"a": 9}, "b": ["x"]}}]',
    "braces-of-two": '{{"a": 1, "b": {"c": 2}}, {"d": {}}}',
    "lists-on-lines": "[1.0\n[2.0]]",
    "lists-in-lists-on-lines": '[["a"]\n[["b"]]]',
    "lines-merged": '{"a": 1,\n{"b": 2}',
    "key-with-dollar": "{a: 'x', b: '+1, $: -1}",
    "string-before-list": "'rock \\'n\\' roll'\n  [\n]",
    "escape-behind-braces": '{}\\u540d": "x"}',
    "parts-of-space": "['  '\n ':',\n true]",
    "parts-beside-comment": "{a: ['x ' // ok\n ':',\n true]}",
    "early-brace-comments": "{\n  a1: 5}, # per unit\n  // the name\n  b: 'x' /* cm */\n",
    "early-brace-comma": "{\n  a1: 5, }# per unit\n  // the name\n  b: 'x' /* cm */\n",
    "early-brace-dollar": "{a: ['x'], b: 'y'}, $: '1'",
    "early-brace-dash": "{a: 1}, is-new: 5",
    "early-bracket-comma": "[\n  ['x'],\n    '+1',\n  ], /* see */\n",
    # Marks that moved into a string, or out of one.
    "colon-at-edge": '{":b" true}',
    "colon-swapped-with-quote": '{"id"" :OK"}',
    "comma-at-edge": '{"a": ",x" "b": 1}',
    "bracket-in-string": '["]a"',
    "bracket-over-line": '[\n  "red]\n"',
    "closer-too-many-by-string": '{name: "s", args:" {q: true", n: 1}}',
    "string-of-brackets": '[{"c":"f""},{c":9}]',
    "comment-in-string": '{"a": "x, # n"\n "b": 1}',
    "quote-moved-to-edge": "{'a': -1, \"b\": 'f, 'c': 'N', \"it's'\": null}",
    "quote-over-equals": '{a="b", "k"="-"5, qty="+1"}',
    "brace-for-a-part": "{'a': '1',\n 'b': 'two\\n'\n   }}",
    "lost-pair-of-quotes": '{“$”: "”}',
    "comma-between-parts": "{'//': [5,\n  'tab '\n  ,'x']\n '#': ['/']}",
    "smart-quote-beside-brackets": "null, “€20”[]",
    "comment-mark-moved": '{"t": ["x",  /* no "low"], "done": */false}',
    "comment-swapped": "{a: 1, /**/ b: 2 }",
    "triple-ends-in-quote": '{"T": """a 5" pan""""}',
    "triple-begins-with-quote": '{"c": """"low""", """A"""], "d": 1}',
    "underscore-for-quote": '{"a": 1, _b": 2}',
    "underscore-for-comma": "[12_17]",
    "sign-before-colon": "{qty-:0.5}",
    "digit-before-key": "{id:1,7qty:2}",
    "dollar-for-comma": "{a:{b:1}$lines:[]}",
    "half-strings-with-brackets": '{"t": [["x", "a=b], [null, "y", "z"]], "u": 1}',
    "empty-on-other-column": "{\n  'a': {}\n    'c': 1\n  \n}",
    "words-behind-comma": "[\n  16, // o'clock\n  4,  o'clock\n]",
    "full-width-comma": "[true 、 required]",
    "parts-in-tuple": "{'a': ('x'\xa0 'y')}",
    "tuple-for-value": "{'c': 4, 'b'()}",
    "escaped-empty": "[\\n [\\n ]\\n 19\\n]",
    "empty-before-key": "{}\n  status: false\n",
    "empty-before-literal": "[]\nfalse Done.",
    "early-brace-keys": "{x: 1}\ny: 2",
    "early-brace-last-comma": "{'a': 5,} 'b': None",
    "inside-comment": '"x" /* e.g. {"a": 1} [*/]',
    "inside-smart": "“x = {a: 1}; // n”,true[,“z”]",
    "template-before-list": "[1, ]``",
    "smart-before-list": "“low”\n  [\n]",
    "triple-before-list": '"""a"""\n  [\n]',
    "label-and-brace": 'data: {"2fa": true}}',
    "literal-and-list": "true[]\n[6]",
    "letter-and-list": 'b[false, 1]\n["x", "y"]',
    "tuple-behind": '{"a": 1}, (2, 3)',
    "bracket-in-comment-behind": '{"a": 1} /*[ n ]*/',
    # Smart quotes, templates, entities.
    "smart-unclosed": "{“a”: “x”, “last\n: 1, “b”: “y”}",
    "smart-unopened": "[ ”, “b”]",
    "smart-colon": "{“is-new”“ ::”, “b”: “y”}",
    "smart-comma": "{“a”: “,:” “b”: “y”}",
    "smart-brace": "“a”: “{:”, “b”: “y”}",
    "template-comma": "{a: `[x],` b: {c: 1}}",
    "entity-broken": "{&quot;a&quot;: “quot;x&quot;}",
    "entity-unfinished": "{&quot;a1&quot”: {&quot;b&quot;: 0}}",
    "entity-in-string-outside": '[ "0"\n, "b"\n, ]\n"&quot;"',
    "entity-outside": "{}&quot;a&quot;: &quot;x&quot;",
    "template-unclosed": '{"a": `u,\n"b": `# n`\n}',
    "template-over-comment": '["x", `u, `// n`\n]',
    # Comments and text that went into one another.
    "comment-end-broken": "[1 /* a *, 2, 3 /* b */, 4]",
    "comment-begins-in-data": '[{"a": 1,/* "b": 2} /* y */]',
    "comment-mark-in-line": '{"a":// 2}\n{"b":3}',
    "comment-mark-in-list": "{'p': ['a', 'b' # 'c']\n}",
    "comma-in-hex": "[0x2,ab]",
    "triple-quotes-apart": '[{\'a\': "", "x"""}]',
    "triple-quotes-too-many": '{"a": """x"""""" "b": 1}',
    "quote-in-number": "{'b': '4'2'}",
    "sign-for-colon": '[{"a" -1 , "b" :-83.79}]',
    "half-a-comment-mark": "[\n  true, # it's fine\n  -1, '/ first one\n]",
    "bracket-in-last-string": "[{'a': 1},\n {'b': 2},\n '[]'",
    "strings-of-python": "['ab' 'cd', 'e']",
    # What stands around.
    "arrow-label": "x=>[1]}",
    "cut-behind-comment": '["a" /* n */, "b":',
    "brace-behind-comment": '{"a": 1 /* c */,{ : -45}',
    "brace-in-assignment": '{ata = {"a": 1}',
    "item-behind-empty": 'Result: [\r\n  ]\r\n"Zoë" That\'s all.',
    "list-on-line-broken": "[:]\n[2.0]",
    "list-on-line-swapped": "0[, -1]\n[0, -2]",
    "list-on-line-quoted": '"[nil", 1]\n["nil", 2]',
    "list-on-line-letter": "[a.1]\n[0.2]",
    "list-on-line-touching": '["a", 1](["a", 2]',
    "label-or-key": 'e1: {"a": 1}, {"b": true}',
    "label-or-key-arrow": '"b_2" => {"a": 1}, {"b": "x"}',
    "brace-of-label": 'title=[], x={"a": 1}}',
    "brace-of-empty": "qty = {}}",
    "brace-of-name": "{title} {last: 1, id: 0}}",
    "brace-above": "\n  a1: {\n    {last: false,\n    id: 1\n  }\n}",
    "arrow-before": '"b_2" => 10, "c" => ["yes"]}',
    "equals-before": '{id }= {"a" = "x", b = 1}',
    "equals-after": '{id = "50%"}, first = "-5"',
    "name-after": "{}$: '[x]'",
    "template-after": "[null, ]`x`",
    "template-before": "a: `we`{, 'b': 7}",
    "fields-before": "\n  a1: 0, // ok\n{}",
    "fields-before-comment": "\n  a: null,\n  # id\n  {b: 0\n}",
    "field-after-comment": "{\n  a: null,\n  }# id\n  b: 0\n",
    "smart-before": "“x*y”, [“a”]",
    "tuple-around": "({'a1': 'No'}, (-0.5,), 0,)",
}


@pytest.mark.parametrize("text", TIES.values(), ids=TIES.keys())
def test_a_tie_is_refused(text):
    """Of two documents that one slip made this text of, none is chosen."""
    parsed = parse_output(text, complete=True)
    assert not parsed.ok, (parsed.value, parsed.repairs)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # Python reads the damaged texts, too
@pytest.mark.parametrize("seed", [1, 2])
def test_no_edit_of_a_short_document_makes_another_one(seed):
    """A smaller draw of `python -m bench.repair_edits`, which makes 500,000."""
    table, wrong, _ = repair_edits.run(seed, 10_000, length=40)
    assert not wrong, (seed, [case.text for case in wrong])
    assert sum(count for (_, result), count in table.items() if result == "exact") > 300
