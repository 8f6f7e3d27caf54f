"""Chat templates: the reference's text, and hostile ones that cost two seconds at most."""

import time
from pathlib import Path

import pytest
import transformers

from model.checkpoint.chat import ChatTemplateError, chat_text, render_chat
from model.loading import open_model

MESSAGES = [
    {"role": "user", "content": "Why is the sky blue? <b>&</b>"},
    {"role": "assistant", "content": "Scattering."},
    {"role": "user", "content": "Thanks 日本"},
]
PLAIN = "{% for m in messages %}\n  {% if m.role != 'system' %}\n{{ m.role }}: {{ m.content }}\n{% endif %}{% endfor %}"


def test_the_default_models_template_gives_the_references_text(default_model_path: Path) -> None:
    tokenizer = open_model().tokenizer
    judge = transformers.AutoTokenizer.from_pretrained(default_model_path.parent, gguf_file=default_model_path.name)
    for messages in (MESSAGES, MESSAGES[:1], [{"role": "system", "content": "Be brief."}, *MESSAGES]):
        for prompt in (True, False):
            ours = chat_text(tokenizer, messages, add_generation_prompt=prompt)
            theirs = judge.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt)
            assert ours == theirs


@pytest.mark.parametrize(
    "template",
    [
        PLAIN,
        "{{ messages | tojson }}{{ bos_token }}{{ eos_token }}{{ tools is none }}",
        "{%- for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}{{ m['content'] | trim }}{% endfor %}",
        "a{% generation %}b{{ messages[0].content }}{% endgeneration %}c",
        "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}",
        "{{ strftime_now('%Y') }}",
    ],
)
def test_templates_render_as_the_reference_renders_them(template: str) -> None:
    rendered = transformers.utils.chat_template_utils.render_jinja_template(
        [MESSAGES], chat_template=template, add_generation_prompt=True, bos_token="<s>", eos_token="</s>"
    )
    ours = render_chat(template, MESSAGES, bos_token="<s>", eos_token="</s>")
    assert ours == rendered[0][0]


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{% for m in messages %}{{ m.role ", "line 1: "),
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "SecurityError"),
        ("{{ messages.append(1) }}", "SecurityError"),
        ("{{ cycler.__init__.__globals__.os.system('true') }}", "SecurityError|UndefinedError"),
        (
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "longer than 5 sec|too much time",
        ),
        ("{% for a in range(99999) %}{{ 'x' * 1000 }}{% endfor %}", "more than 1048576 characters"),
        ("{{ 'x' * 10**10 }}", "too much memory"),
        ("{{ 10**(10**10) }}", "longer than 5 sec|too much"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "calls itself without end|too much"),
        ("{% include '/etc/passwd' %}", "no loader"),
        ("{{ undefined.attribute }}", "UndefinedError"),
    ],
)
def test_hostile_and_broken_templates_are_one_error(template: str, said: str) -> None:
    start = time.monotonic()
    with pytest.raises(ChatTemplateError, match=said) as caught:
        render_chat(template, MESSAGES, seconds=1)
    assert time.monotonic() - start < 10  # a second, on a machine with nothing else to do
    assert "can't be used" in str(caught.value)
