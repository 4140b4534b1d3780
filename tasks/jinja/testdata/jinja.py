"""Writes jinja.json: templates with what jinja2 makes of them in the environment that lm-evaluation-harness uses.

python jinja.py > jinja.json, with jinja2 3.1.
"""

import json

import jinja2

ITEM = {
    "q": "  What is\nit? ",
    "a": "Yes",
    "n": 7,
    "f": 0.5,
    "ok": True,
    "no": None,
    "list": ["x", "it's", 3],
    "m": {"text": ["u", "v"], "label": ["A", "B"]},
}

TEMPLATES = [
    "", "plain", "a{b}c", "{{q}}", "Q: {{q.strip()}}\nA:", "{{ q | trim }}!", "{{a|lower}} {{a|upper}} {{a.lower()}}",
    "{{n}} {{f}} {{ok}} {{no}}", "{{list}}", "{{m.text}}", "{{m['label'][1]}}", "{{m.text[-1]}}", "{{list[1:]}}",
    "{{list[:1]}} {{a[1:]}} {{a[-2:]}} {{a[5:]}}", "{{list[0] + a}}", "{{a ~ n ~ f}}", "{{n + 1}} {{n - 1}} {{n * 2}}",
    "{{n / 2}} {{n // 2}} {{n % 4}} {{-n // 2}} {{-n % 4}} {{1.5 + 1}} {{7.5 // 2}} {{-7.5 % 2}}",
    "{{ 'yes' if ok else 'no' }}", "{{ 'yes' if not ok }}", "{% if n > 5 %}big{% else %}small{% endif %}",
    "{% if n == 1 %}one{% elif n == 7 %}seven{% else %}other{% endif %}",
    "{% for x in list %}{{loop.index}}. {{x}}\n{% endfor %}",
    "{% for x in list -%}\n {{ x }}\n{%- if not loop.last %}, {% endif %}{% endfor %}",
    "{% set x = a %}{{x}}{# nothing #}!", "a  {#- c -#}  b", "a {{- a -}} b", "{{ ['a', 'b', n] }}", "{{ [a, q] }}",
    "{{ m.label.index('B') }}", "{{ 'abc'.index('c') }} {{ 'abc'.find('z') }}", "{{ list | length }} {{ q | length }}",
    "{{ list | join(', ') }}", "{{ ', '.join(m.text) }}", "{{ a.replace('Y', 'y') }} {{ a | replace('s', 'S') }}",
    "{{ q.split() }} {{ 'a,b,,c'.split(',') }}", "{{ 'x' in list }} {{ 'z' not in list }} {{ 'e' in a }}",
    "{{ 1 < 2 }} {{ 'a' < 'b' }} {{ 1 == 1.0 }} {{ 'a' == 'b' }} {{ 2 >= 3 }} {{ 1 != 2 }}",
    "{{ not ok }} {{ ok and n }} {{ no or a }} {{ 0 or '' }}", "{{ a.capitalize() }} {{ 'hELLO wORLD' | capitalize }}",
    "{{ 'hello world' | title }} {{ 'hello world'.title() }}", "{{ '5' | int + 1 }} {{ 3.9 | int }} {{ 'z' | int }}",
    "{{ n | string + 'x' }}", "{{ nothing | default('d') }} {{ a | default('d') }}", "{{ nothing is defined }}",
    "{{ a is defined }} {{ no is none }} {{ a is not none }} {{ a is string }} {{ n is number }}",
    "{{ list | first }} {{ list | last }} {{ a | first }}", "{{ 'xxaxx'.strip('x') }} {{ 'xa'.lstrip('x') }}",
    "{{ 'ax'.rstrip('x') }} {{ a.startswith('Y') }} {{ a.endswith('x') }} {{ 'aXbX'.count('X') }}",
    "{{ range(3) | list }} {{ range(1, 3) | list }}", "{{ m.get('x', 'none') }} {{ m.get('text') }}",
    "{{ \"it's\" }} {{ 'say \"x\"' }} {{ ['say \"it\\'s\"'] }} {{ '\\n\\t\\\\' }} {{ '\\u00e9' }}", "{{ ['\\n\\té☃\\x01'] }}",
    "{{ 1e20 }} {{ 1.0 }} {{ 1e-7 }} {{ 0.0001 }} {{ 123456789.25 }} {{ 1e16 }} {{ 1e15 }}", "{{ (1, 2)[1] }} {{ (3) }}",
    "{{ 1.0 % 0.1 }} {{ 1.0 // 0.1 }} {{ -1.0 % 0.1 }} {{ -0.3 // 0.1 }} {{ 5.0 % -3 }} {{ 6.0 // 3 }} {{ 0.0 // -2 }}",
    "{{ 9007199254740993 == 9007199254740992.0 }} {{ 9007199254740993 > 9007199254740992.0 }} {{ 2.5 > 2 }} "
    "{{ -2.5 < -2 }} {{ 3 == 3.0 }} {{ 1e300 > 5 }} {{ 4611686018427387904 * -2 }} {{ -9223372036854775807 - 1 }}",
    "{{ '0x1p3'|int }} {{ '  ab '.strip('') }}! {{ 'aab'.lstrip('') }}",
    "{{ '}}' }}", "end\n", "{{ a }}\n\n", "{{ 'a' 'b' }}",
    "{{ [1, 2] + [3] }} {{ [[1], 'a'] == [[1], 'a'] }} {{ True }} {{ None }}", "{{ a if ok else nothing }}",
    "{% for k, v in [['a', 1], ['b', 2]] %}{{k}}={{v}};{% endfor %}",
    "{% for c in 'abc' %}{{ loop.index0 }}{{ c }}{% if loop.first %}!{% endif %}{% endfor %}",
    "{{ 2 * 3 ~ 4 }} {{ 2 * 3 + 4 }} {{ 10 - 2 - 3 }} {{ -2 * 3 }}", "{{ 'a' ~ 'b' in 'xaby' }}",
    "{{ no is none and ok }} {{ a|lower == 'yes' }} {{ m.text|length > 1 }}", "{{m.label[m.text.index('v')]}}",
    "{{ a.lower() if n != 7 else a.upper() }}", "{{ list[n - 6] }}", "{%- if ok -%} x {%- endif -%} y",
    "{{ no|default('d') }} {{ no|default('d', true) }} {{ ''|default('d', true) }} {{ a|default('d', true) }} "
    "{{ nothing|default('d', false) }} {{ nothing|default }}!",
    "{% for x in list if x is string %}{{ loop.index }} of {{ loop.length }}: {{ x }}"
    "{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for k, v in [['a', 1], ['b', 2]] if v > 1 and k != 'c' %}{{ k }}{% endfor %}",
    "{% for x in [1, 2] %}{% for y in list if loop.first %}{{ x }}{{ y }}{% endfor %}{% endfor %}",
    "{% for x in list if no %}{{ x }}{% endfor %}",
    "{{ \"it's o'neil's well-KNOWN (big) <tag> [x]{y} 3rd/4th\"|title }} {{ \"it's 3rd\".title() }}",
    "{{ '3.7'|int }} {{ ' -3.7 '|int }} {{ '1e3'|int }} {{ 'inf'|int }} {{ 'nan'|int }} {{ ''|int }} {{ -3.7|int }} "
    "{{ 9007199254740993|int }} {{ ok|int }}",
    "{{ 1 < 2 < 2 }} {{ 1 < 2 < 3 <= 3 }} {{ 3 > 2 > 1 != 1 }} {{ 1 == 1 in [1] }} {{ 1 in [1] not in [[1]] }} "
    "{{ (1 < 2) == True }}",
    "{{ -1 is undefined }} {{ -n|string + 'x' }} {{ - -n|string }} {{ -n is number }}",
    "{{ 'Straße ﬁn ΟΔΟΣ İ'.upper() }} {{ 'ΟΔΟΣ İ'|lower }} {{ 'ßa ǆb ﬁn'.title() }} {{ 'ßa ǆb ﬁn'|title }} "
    "{{ 'ßA'|capitalize }} {{ 'ﬁN'.capitalize() }} {{ ''|capitalize }}!",
    "{{ ['\x1ca\x1f b\u00a0'.strip(), '\x1ca\x1db c'.split(), '\x1c'|trim] }}",
]


def main():
    env = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    cases = [{"template": t, "text": env.from_string(t).render(**ITEM)} for t in TEMPLATES]
    print(json.dumps(cases, indent=1, ensure_ascii=False))


main()
