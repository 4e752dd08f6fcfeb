#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Counts patterns of hard English in comments of C, documents and messages, per folder and per 1,000 words. Counts and
rates may only fall; tools/english.tsv has the lowest ones so far.

    tools/check_english.py           fails if both count and rate of a pattern exceed tools/english.tsv
    tools/check_english.py --table   prints words, rates and lengths of sentences per folder
    tools/check_english.py --where P1 src/run    prints each place of a pattern
    tools/check_english.py --update  writes the lower counts and rates

Definitions. A comment is a C comment without its SPDX line; neighbouring line comments are one. A document is Markdown
without code blocks, tables and headings; a list item is a separate sentence. A message is a string of C in src/ that
contains a blank. A sentence ends with a full stop, an exclamation mark or a question mark before a blank, or with its
paragraph.
"""
import argparse
import collections
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATTERNS = {
    "P1": r"\bwhat (?:is|was|were|are|has|had|it|they|the|a|an|lies|comes|remains|holds|takes)\b",
    "P2": r"\b(?:is|are|was|were|be) (?:said|told)\b",
    "P3": r"\bbehind\b",
    "P4": r"\b(?:the|its|their|a|this|each|whose|at) begin\b|\bbegin (?:of|and (?:the )?end)\b",
    "P8": r"\b(?:no|some)body\b",
    "P9": r"\blies? in\b|\bis in nothing\b|\bin no other\b|\bin none\b",
    "P10": r"\belse\b|\b(?:so|as) many\b(?! as)",
    "P11": r"\banew\b|\bby itself\b|\bof (?:its|their) own\b|\bof ours\b|\bfor want of\b",
    "P12": r"\bthere(?=[.;:!?)]?(?:\s|$)[A-Z(]?)(?=\W*$)",
}
# Text that another issue, "What a step would be without it", rewrites.
LATER = re.compile(r"src/agents/torch/training|src/importers/recording/recording_(torch|stream|training)|src/importers/kineto/kineto_"
                   r"(infer|tokens|makers|phases|steps)\.|src/model/(infer_|inference)|src/diagnosis/|rules/")
LONG_SENTENCE = 40
LONG_PARAGRAPH = 80
LONG_PAGE = 2500
WORD = re.compile(r"[A-Za-z][\w'-]*")


def comments(text):
    """Returns the paragraphs of all comments; empty lines separate paragraphs."""
    found = []
    for match in re.finditer(r'"(?:[^"\\\n]|\\.)*"|/\*(.*?)\*/|((?://[^\n]*\n\s*)+)', text, re.S):
        body = match.group(1) or match.group(2)
        if not body:
            continue
        lines = [re.sub(r"^\s*(\*|//)?\s?", "", line) for line in body.split("\n") if "SPDX-License-Identifier" not in line]
        found += paragraphs(lines)
    return found


def paragraphs(lines):
    blocks, block = [], []
    for line in [*lines, ""]:
        if line.strip() and not line.startswith(("    ", "\t")):  # an indented line is an example
            block.append(line.strip())
        elif block:
            blocks.append(" ".join(block))
            block = []
    return blocks


def document(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    blocks, block = [], []
    for line in [*text.split("\n"), ""]:
        is_item = re.match(r"\s*(?:[-*]|\d+\.) ", line)
        if not line.strip() or line.startswith(("#", "|", "<")) or is_item:
            if block:
                blocks.append(" ".join(block))
            block = []
        if line.strip() and not line.startswith(("#", "|", "<")):
            block.append(re.sub(r"^\s*(?:[-*]|\d+\.) ", "", line).strip())
    if block:
        blocks.append(" ".join(block))
    return [re.sub(r"`[^`]*`", "CODE", re.sub(r"\]\([^)]*\)", "]", block)) for block in blocks]


def messages(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    joined = re.sub(r'"\s*\n\s*"', "", text)
    return [string for string in re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined) if " " in string and len(WORD.findall(string)) > 1]


def sentences(paragraph):
    return [part for part in re.split(r"(?<=[.!?])\s+", paragraph) if WORD.search(part)]


def texts(root):
    """Yields (group, path, paragraphs) of all text to count."""
    for path in sorted([*(root / "src").rglob("*.[ch]"), *(root / "include").rglob("*.h*")]):
        name = str(path.relative_to(root))
        if LATER.match(name):
            continue
        text = path.read_text(encoding="utf-8")
        folder = str(path.parent.relative_to(root))
        yield f"comments {folder}", name, comments(text)
        if name.startswith("src/") and path.suffix == ".c":
            yield f"messages {folder}", name, messages(text)
    for path in sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "examples").rglob("*.md")]):
        name = str(path.relative_to(root))
        if not LATER.match(name):
            yield f"documents {path.parent.relative_to(root)}", name, document(path.read_text(encoding="utf-8"))


class Group:
    def __init__(self):
        self.words = self.sentences = self.long_sentences = self.long_paragraphs = 0
        self.counts = collections.Counter()

    def add(self, blocks):
        for block in blocks:
            words = len(WORD.findall(block))
            self.words += words
            self.long_paragraphs += words > LONG_PARAGRAPH
            for sentence in sentences(block):
                self.sentences += 1
                self.long_sentences += len(WORD.findall(sentence)) > LONG_SENTENCE
                for pattern, expression in PATTERNS.items():
                    self.counts[pattern] += len(re.findall(expression, sentence, re.I))

    def rates(self):
        """Returns the rates per 1,000 words, and the share of long sentences in per cent."""
        rates = {pattern: 1000 * self.counts[pattern] / max(self.words, 1) for pattern in PATTERNS}
        rates["long"] = 100 * self.long_sentences / max(self.sentences, 1)
        return rates


def groups(root):
    found = collections.defaultdict(Group)
    for group, _, blocks in texts(root):
        found[group].add(blocks)
    return dict(sorted(found.items()))


def print_table(found):
    print(f"{'':44}{'words':>8}" + "".join(f"{pattern:>7}" for pattern in [*PATTERNS, "long %"]) + f"{'> 80':>6}")
    totals = collections.defaultdict(Group)
    for name, group in found.items():
        total = totals[name.split()[0]]
        total.words += group.words
        total.sentences += group.sentences
        total.long_sentences += group.long_sentences
        total.long_paragraphs += group.long_paragraphs
        total.counts += group.counts
    for name, group in [*found.items(), *((f"all {name}", total) for name, total in totals.items())]:
        print(f"{name:44}{group.words:8}" + "".join(f"{rate:7.2f}" for rate in group.rates().values()) + f"{group.long_paragraphs:6}")


def read_reached(path):
    reached = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        if line and not line.startswith("#"):
            group, pattern, count, rate = line.split("\t")
            reached[group, pattern] = int(count), float(rate)
    return reached


def rounded_up(rate):
    return -(-round(rate * 100, 6) // 1) / 100


def main():
    parser = argparse.ArgumentParser(prog="tools/check_english.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--where", nargs=2, metavar=("PATTERN", "PATH"))
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    reached_file = chosen.root / "tools/english.tsv"
    if chosen.where:
        for group, name, blocks in texts(chosen.root):
            for sentence in [s for block in blocks for s in sentences(block) if name.startswith(chosen.where[1])]:
                if re.search(PATTERNS[chosen.where[0]], sentence, re.I):
                    print(f"{name}: {group.split()[0]}: {sentence}")
        return 0
    found = groups(chosen.root)
    if chosen.table:
        print_table(found)
        return 0
    reached = read_reached(reached_file)
    problems, lines = [], []
    for name, group in found.items():
        for pattern, rate in group.rates().items():
            count, rate = group.long_sentences if pattern == "long" else group.counts[pattern], rounded_up(rate)
            most, highest = reached.get((name, pattern), (count, rate))
            if count > most and rate > highest:
                problems.append(f"{name}: {pattern}: {count}, {rate:.2f}, more than {most}, {highest:.2f}"
                                + (f": tools/check_english.py --where {pattern} {name.split()[1]}" if pattern in PATTERNS else ""))
            lines.append(f"{name}\t{pattern}\t{min(count, most)}\t{min(rate, highest):.2f}")
    if chosen.update:
        reached_file.write_text("# Group, pattern, count, and rate per 1,000 words (long: sentences, per cent) that tools/check_english.py has reached.\n"
                                  + "\n".join(lines) + "\n", encoding="utf-8")
        return 0
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
