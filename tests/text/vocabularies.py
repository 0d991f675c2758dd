"""Small tokenizers of every family, built in memory; each call gives a fresh one."""

from __future__ import annotations

from functools import lru_cache

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "Žluťoučký kůň úpěl ďábelské ódy.",
    "東京は日本の首都です。北京是中国的首都。",
    "A compass 🧭, a family 👩‍👩‍👧 and a flag 🇨🇿.",
    "def f(x):\n    return x  # twice  the space\n",
]
SPECIAL = ["<|end|>", "<s>", "</s>"]


def byte_level() -> Tokenizer:
    """Byte-level BPE in the manner of GPT-2, with an added token that holds a space."""
    return Tokenizer.from_str(_trained_byte_level())


@lru_cache
def _trained_byte_level() -> str:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.add_tokens([AddedToken("<tool call>", normalized=False)])
    text: str = tokenizer.to_str()
    return text


def byte_fallback() -> Tokenizer:
    """BPE in the manner of Llama 2: words carry U+2581, unknown characters become byte tokens."""
    words = ["▁", "a", "b", "c", "é", "▁a", "ab", "▁ab", "🧭", ".", "▁▁", "\n"]
    vocabulary = {token: place for place, token in enumerate(["<unk>", *SPECIAL])}
    for byte in range(256):
        vocabulary[f"<0x{byte:02X}>"] = len(vocabulary)
    for word in words:
        vocabulary[word] = len(vocabulary)
    merges = [("▁", "a"), ("a", "b"), ("▁", "ab"), ("▁", "▁")]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(parts)
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    return tokenizer


def metaspace() -> Tokenizer:
    """Unigram in the manner of T5: the decoder itself turns U+2581 into spaces."""
    pieces = [
        ("<unk>", 0.0),
        ("▁", -2.0),
        ("▁the", -3.0),
        ("▁fox", -3.0),
        ("es", -4.0),
        *[(c, -6.0) for c in "thefoxs é"],
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


def word_piece() -> Tokenizer:
    """WordPiece in the manner of BERT, with its decoder's clean-up."""
    words = ["[UNK]", "the", "fox", "##es", ".", ",", "do", "n", "'", "t"]
    tokenizer = Tokenizer(models.WordPiece({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer
