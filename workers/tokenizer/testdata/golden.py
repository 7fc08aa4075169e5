"""Writes golden.json: ids that Hugging Face tokenizers gives for testdata/tokenizer.json, added tokens on and off.

Run in this folder, with tokenizer.json written by `go test -run TestHuggingFaceGivesTheSameIDs -update`:
    pip install tokenizers==0.23.3 && python golden.py
"""
import json
import random

from tokenizers import Tokenizer

TEXTS = [
    "", " ", "  ", "\n", "\n\n", " \n ", "\t\tx", "hello world", "Hello,  world!!\n\nNext line.\r\n", "  leading and trailing  ",
    "I'm, we'll, they've, it's, don't, you'd, we're; I'M WE'LL 'S 's'ss 'ſ xx'ſt '", "12345 6 789", "x=3.14159;y=-2e10", "½ ² ٣ Ⅷ 一二三",
    "def f(x):\n    return x**2 + 1  # square\n\nprint(f(3))\n", "import math\nprint(math.gcd(48,18))", "{\"name\": \"python\", \"arguments\": {}}",
    "中文字符和标点。你好，世界！", "日本語のテキスト、カタカナ", "한국어 텍스트", "Привет, мир! Ёлка", "مرحبا بالعالم", "नमस्ते दुनिया",
    "😀😃👨‍👩‍👧‍👦🇩🇪 ok", "e\u0301 é ñ n\u0303 Å A\u030a \ufb01", "a\u00a0b\u2003c\u3000d\u0085e\u2028f", "zero\u200bwidth", "\u0000\u0001\x7f",
    "<|im_start|>user\nhi<|im_end|>\n", "<tool_call>\n{}\n</tool_call>", "<reason></reason>\n<answer>\\boxed{6}</answer>", "<|im_end|", "<<|im_end|>>",
    "<tool_call", "a<tool_response>b</tool_response>c", "\\frac{1}{2}+\\sqrt[3]{x_1^2}", "$$\\sum_{i=1}^{n} i^2$$", "a" * 300, "ab" * 200, "!" * 100,
    "    \n    \n\tx", "x \n", "x\n ", "x \r\n y", "...\n\n\nA", "foo_bar-baz/qux@example.com", "C++ & C# | F#", "100,000.00€ £5 ¥7", "Don’t “quote” — dash…",
]


def noise(rng):
    alphabet = list("abcABC019 .,'\"!?\n\r\t{}()<>|_/\\-+*=") + ["é", "e\u0301", "ſ", "中", "😀", "\u00a0", "\u2003", "Ⅷ", "'s", "'LL", "<|im_end|>", "<reason>", "print"]
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 40)))


def main():
    on = Tokenizer.from_file("tokenizer.json")
    # Added tokens off: the same file without them.
    body = json.load(open("tokenizer.json", encoding="utf-8"))
    body["added_tokens"] = []
    off = Tokenizer.from_str(json.dumps(body))
    rng = random.Random(1)
    rows = []
    for text in TEXTS + [noise(rng) for _ in range(300)]:
        ids = on.encode(text, add_special_tokens=False).ids
        rows.append({"text": text, "on": ids, "off": off.encode(text, add_special_tokens=False).ids,
                     "decoded": on.decode(ids, skip_special_tokens=False)})
    with open("golden.json", "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")


if __name__ == "__main__":
    main()
