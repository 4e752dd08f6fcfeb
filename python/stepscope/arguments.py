# SPDX-License-Identifier: Apache-2.0
"""Options for training scripts: converts the flags and YAML blocks of other profilers to one set of settings.

    parser = argparse.ArgumentParser()
    stepscope.add_arguments(parser)
    settings = stepscope.from_args(parser.parse_args())
    with settings.profile() as prof:            # does nothing unless profiling is enabled
        for number, batch in enumerate(loader):
            train(batch)
            settings.log_memory(number)
            prof.step()

docs/script-options.md lists the options. `stepscope run` has the same options for whole programs.
"""
import argparse
import numbers
import os

from stepscope._nothing import Nothing

# name, type, default, help
_SCHEDULE = "steps of each cycle"
STYLES = {
    # flags from guides for Hugging Face trainers: --profiler-wait-steps, ...
    "hf": (
        ("enable_profiling", bool, False, "record operators by the schedule below"),
        ("enable_memory_logging", bool, False, "print the memory of each GPU now and then"),
        ("profiler_output_dir", str, "./profiler_traces", "directory of the traces"),
        ("profiler_wait_steps", int, 5, f"{_SCHEDULE} without recording"),
        ("profiler_warmup_steps", int, 2, f"{_SCHEDULE} in which recording warms up"),
        ("profiler_active_steps", int, 3, f"{_SCHEDULE} that are recorded"),
        ("profiler_repeat", int, 1, "number of cycles; 0: to the end"),
        ("memory_log_steps", int, 10, "steps between two lines about memory"),
        ("stacks", bool, True, "record lines of Python"),
        ("shapes", bool, True, "record shapes of inputs"),
    ),
    # --profiling --prof_dir DIR --ptensorboard
    "trainer": (
        ("profiling", bool, False, "record operators"),
        ("prof_dir", str, "./prof", "directory of the results"),
        ("ptensorboard", bool, False, "traces for TensorBoard instead of files"),
        ("wait", int, 0, f"{_SCHEDULE} without recording"),
        ("warmup", int, 1, f"{_SCHEDULE} in which recording warms up"),
        ("active", int, 1, f"{_SCHEDULE} that are recorded"),
        ("repeat", int, 1, "number of cycles; 0: to the end"),
        ("skip_first", int, 0, "steps before the first cycle"),
    ),
    # --profile true --profiling_frequency 10 ...
    "frequency": (
        ("profile", bool, False, "record operators"),
        ("profiling_output", str, "", "directory of the results; default: ./MODEL_TYPE-RANK"),
        ("with_stack", bool, False, "record lines of Python"),
        ("with_shapes", bool, False, "record shapes of inputs"),
        ("export_trace", bool, True, "write a trace for each cycle"),
        ("export_memory_timeline", bool, False, "write memory by category over time; brings stacks and shapes with it"),
        ("wait_steps", int, 7, f"{_SCHEDULE} without recording; not with --repeat 0"),
        ("warmup_steps", int, 2, f"{_SCHEDULE} in which recording warms up"),
        ("active_steps", int, 1, f"{_SCHEDULE} that are recorded"),
        ("repeat", int, 0, "number of cycles; 0: one every --profiling_frequency steps"),
        ("profiling_frequency", int, 10, "length of a cycle with --repeat 0"),
        ("max_steps", int, -1, "steps of an epoch; raised to the length of a cycle"),
    ),
}
_LEAST = {"memory_log_steps": 1, "profiler_active_steps": 1, "active": 1, "active_steps": 1}
_ALSO = {"profiling_output": ("profiling_outputs",)}


def _bool(text):
    word = text.lower()
    if word in ("true", "yes", "on", "1"):
        return True
    if word in ("false", "no", "off", "0"):
        return False
    raise argparse.ArgumentTypeError(f"expected true or false, got '{text}'")


def _not(text):
    return not _bool(text)


def _count(name):
    least = _LEAST.get(name, -1 if name == "max_steps" else 0)

    def convert(text):
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"expected a number, {least} or more, got '{text}'")
        return number

    return convert


def _is_count(value, least):
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and value >= least


class _Spelling(str):
    """The spelling with underscores of an option that is also spelled with dashes.

    argparse calls an abbreviation of both spellings (`--wait`) ambiguous, although they are one option. So it matches
    the spelling with dashes, unless the abbreviation has an underscore.
    """

    def startswith(self, prefix, *places):
        return super().startswith(prefix, *places) and (not isinstance(prefix, str) or "_" in prefix or not prefix.strip("-"))


class _Style(str):
    """The name of a style, with the defaults that the script gave."""

    def __new__(cls, name, defaults):
        made = super().__new__(cls, name)
        made.defaults = defaults
        return made

    def __getnewargs__(self):
        return str(self), self.defaults


def _spellings(name, prefixes=("--",)):
    found = [prefix + word for each in (name, *_ALSO.get(name, ())) for word in (each.replace("_", "-"), each) for prefix in prefixes]
    return [_Spelling(each) if "_" in each else each for each in dict.fromkeys(found)]


def add_arguments(parser, style="hf", **defaults):
    """Adds a group of options to an argparse parser and returns the parser.

    `style` is "hf", "trainer" or "frequency" (see docs/script-options.md). Dashes and underscores in options are
    equivalent. A switch is given as --x, --no-x, --x true or --no-x true. Keyword arguments replace defaults by name.
    Raises ValueError for an unknown style and TypeError for an unknown option.
    """
    if style not in STYLES:
        raise ValueError(f"style is one of {', '.join(map(repr, STYLES))}, got {style!r}")
    group = parser.add_argument_group("stepscope")
    names = [row[0] for row in STYLES[style]]
    for name in defaults:
        if name not in names:
            raise TypeError(f"style {style!r} has no option {name!r}")
    for name, kind, default, text in STYLES[style]:
        default = defaults.get(name, default)
        shown = f"{text} ({str(default).lower() if kind is bool else default})"
        if kind is bool:
            group.add_argument(*_spellings(name), dest=name, nargs="?", const=True, default=default, type=_bool, metavar="BOOL",
                               help=shown)
            group.add_argument(*_spellings(name, ("--no-", "--no_")), dest=name, nargs="?", const=False, default=default, type=_not,
                               metavar="BOOL", help=argparse.SUPPRESS)
        else:
            group.add_argument(*_spellings(name), dest=name, default=default, type=_count(name) if kind is int else kind,
                               metavar="N" if kind is int else "DIR", help=shown)
    parser.set_defaults(stepscope_style=_Style(style, defaults))
    return parser


# ---- settings ----


def _local_rank():
    for name in ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def _rank():
    for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "LOCAL_RANK"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def _say(text):
    from stepscope import _auto

    _auto.say(text)


def _problem_with(directory):
    """Creates the directory. Returns why nothing can be written to it, or "" if it is writable."""
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as problem:
        return f"the directory {str(directory)!r} cannot be made: {problem.strerror}"
    return "" if os.access(directory, os.W_OK | os.X_OK) else f"the directory {str(directory)!r} cannot be written to"


class _Guarded:
    """An on_trace_ready handler whose errors do not end the training: it prints them on stderr."""

    def __init__(self, handler):
        self.handler = handler

    def __call__(self, prof):
        try:
            self.handler(prof)
        except Exception as problem:
            _say(f"the files of a cycle were not written: {problem}")


class Settings:
    """The settings of a profiler, independent of the style of options they come from.

    Raises ValueError for wrong values.
    """

    def __init__(self, enabled=False, output_dir="./profiler_traces", wait=0, warmup=0, active=1, repeat=0, skip_first=0,
                 record_shapes=True, profile_memory=True, with_stack=True, with_flops=True, memory_log_steps=0, is_board=True,
                 frequency=None, max_steps=-1, timeline=False, has_trace=True, type="pytorch", ranks="local0", is_whole=False,
                 filename="profile", prefix=""):
        counts = {"wait": (wait, 0), "warmup": (warmup, 0), "active": (active, 1), "repeat": (repeat, 0), "skip_first": (skip_first, 0)}
        for name, (value, least) in counts.items():
            if not _is_count(value, least):
                raise ValueError(f"stepscope: {name} wants a whole number, {least} or more, got {value!r}")
        if frequency is not None and repeat == 0:
            wait = frequency - (warmup + active)
            if wait < 0:
                raise ValueError(f"stepscope: profiling_frequency wants {warmup + active} or more, which is warmup + active ({warmup} + {active}), "
                                 f"got {frequency}")
        if timeline:
            record_shapes = with_stack = profile_memory = True
        self.enabled, self.output_dir = enabled, output_dir
        self.wait, self.warmup, self.active, self.repeat, self.skip_first = wait, warmup, active, repeat, skip_first
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.memory_log_steps, self.type = with_flops, memory_log_steps, type
        self.max_steps = max(max_steps, wait + warmup + active) if max_steps > 0 else max_steps
        self.timeline, self.has_trace, self.is_board, self.ranks = timeline, has_trace, is_board, ranks
        self.is_whole, self.filename, self.prefix = is_whole, filename, prefix

    def is_recorded_here(self):
        """Returns true if this rank is recorded: only the first rank of a machine, or all ranks."""
        return self.enabled and (self.ranks == "all" or _local_rank() == 0)

    def schedule(self):
        from stepscope.profiler import always, schedule

        if self.is_whole:
            return always
        return schedule(wait=self.wait, warmup=self.warmup, active=self.active, repeat=self.repeat, skip_first=self.skip_first)

    def describe(self):
        """Returns the lines that profiling guides print at the start."""
        lines = []
        if self.enabled:
            by = f"wait={self.wait}, warmup={self.warmup}, active={self.active}, repeat={self.repeat}"
            lines += ["=" * 80, "PyTorch Profiler ENABLED", f"Output directory: {self.output_dir}",
                      f"Schedule: {'none, every step' if self.is_whole else by}", "=" * 80]
        if self.memory_log_steps:
            lines += ["=" * 80, "GPU Memory Logging ENABLED", f"Logging every {self.memory_log_steps} steps", "=" * 80]
        return "\n".join(lines)

    def profile(self, on_trace_ready=None, **more):
        """Returns a profiler with these settings.

        The profiler does nothing if it is not enabled, if this rank is not recorded, or if the directory is not
        writable. Keyword arguments go to stepscope.profile.
        """
        if not self.is_recorded_here():
            return Nothing()
        import warnings

        from stepscope.profiler import profile, tensorboard_trace_handler

        if on_trace_ready is None:
            problem = _problem_with(self.output_dir)
            if problem:
                _say(f"nothing is profiled: {problem}")
                return Nothing()
            on_trace_ready = _Guarded(tensorboard_trace_handler(self.output_dir) if self.is_board else Handler(self))
        if self.type == "simple":
            from stepscope._simple import Simple

            return Simple(os.path.join(self.output_dir, self.filename), on_trace_ready)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning about a schedule without warm-up, which the settings ask for
            by = self.schedule()
        wanted = {"schedule": by, "on_trace_ready": on_trace_ready, "record_shapes": self.record_shapes,
                  "profile_memory": self.profile_memory, "with_stack": self.with_stack, "with_flops": self.with_flops}
        return profile(**{**wanted, **more})

    def log_memory(self, step):
        """Prints a line per GPU every `memory_log_steps` steps, on the first rank of a machine. Sizes are in GiB."""
        if not self.memory_log_steps or step % self.memory_log_steps or _local_rank():
            return
        import torch

        if not torch.cuda.is_available():
            return
        gib = 1024**3
        for device in range(torch.cuda.device_count()):
            print(f"[Step {step}] GPU {device}: Allocated: {torch.cuda.memory_allocated(device) / gib:.2f}GB, "
                  f"Reserved: {torch.cuda.memory_reserved(device) / gib:.2f}GB, "
                  f"Peak: {torch.cuda.max_memory_allocated(device) / gib:.2f}GB")


_SWITCH_OF = {"hf": "enable_profiling", "trainer": "profiling", "frequency": "profile"}


def _say_what_is_idle(style, given):
    """Prints the options that have no effect, because the switch that they belong to is off."""
    defaults = {row[0]: row[2] for row in STYLES[style]}
    defaults.update(getattr(style, "defaults", {}))
    idle = {}
    for name in (each for each in given if given[each] != defaults[each] and _local_rank() == 0):
        switch = "enable_memory_logging" if name == "memory_log_steps" else _SWITCH_OF[style]
        if not given[switch] and not name.startswith("enable_") and name != "max_steps":  # the script itself uses max_steps
            idle.setdefault(switch, []).append(f"--{'no-' if given[name] is False else ''}{name.replace('_', '-')}")
    for switch, names in idle.items():
        _say(f"{', '.join(names)} {'does' if len(names) == 1 else 'do'} nothing without --{switch.replace('_', '-')}")


def from_args(arguments, model_name=None, train_type=None):
    """Returns Settings from parsed arguments with the options of add_arguments().

    `model_name` and `train_type` name the files of style "frequency", and its directory if none is given. Their
    defaults are the script's own options of these names, otherwise "model" and "train".
    """
    style = getattr(arguments, "stepscope_style", "hf")
    given = {row[0]: getattr(arguments, row[0], row[2]) for row in STYLES[style]}
    _say_what_is_idle(style, given)
    if style == "trainer":
        return Settings(given["profiling"], given["prof_dir"], given["wait"], given["warmup"], given["active"], given["repeat"],
                        given["skip_first"], is_board=given["ptensorboard"], ranks="all")
    if style == "frequency":
        model, kind = (str(value or getattr(arguments, option, None) or default) for value, option, default in
                       ((model_name, "model_name", "model"), (train_type, "train_type", "train")))
        name = model.rstrip("/").rpartition("/")[2]
        return Settings(given["profile"], given["profiling_output"] or f"./{name}_{kind}-{_local_rank()}", given["wait_steps"],
                        given["warmup_steps"], given["active_steps"], given["repeat"], record_shapes=given["with_shapes"],
                        profile_memory=False, with_stack=given["with_stack"], with_flops=False, is_board=False,
                        frequency=given["profiling_frequency"], max_steps=given["max_steps"], timeline=given["export_memory_timeline"],
                        has_trace=given["export_trace"], ranks="all", prefix=f"{name}-{kind}-")
    return Settings(given["enable_profiling"], given["profiler_output_dir"], given["profiler_wait_steps"],
                    given["profiler_warmup_steps"], given["profiler_active_steps"], given["profiler_repeat"],
                    record_shapes=given["shapes"], with_stack=given["stacks"],
                    memory_log_steps=given["memory_log_steps"] if given["enable_memory_logging"] else 0)


# ---- YAML ----

_BLOCKS = ("profiler", "profiling", "stepscope")
_WORDS = ("simple", "advanced", "pytorch")
_LEAST_OF = {"start_step": 0, "num_steps": 1, "wait": 0, "warmup": 0, "active": 1, "repeat": 0, "skip_first": 0, "wait_steps": 0,
             "warmup_steps": 0, "active_steps": 1}
_SWITCHES = ("enabled", "record_shapes", "profile_memory", "with_stack", "with_flops")
_PATHS = ("dirpath", "filename", "output_dir")
_KEYS = {"type", *_LEAST_OF, *_SWITCHES, *_PATHS}
_TWINS = (("wait", "wait_steps"), ("warmup", "warmup_steps"), ("active", "active_steps"), ("output_dir", "dirpath"))


class _Block:
    """A block of options in a file or dict. Its error messages name the place."""

    def __init__(self, place, name, content):
        self.place, self.name, self.content = place, name, content

    def wrong(self, key, expected, value):
        return ValueError(f"stepscope: {self.place}{self.name}.{key} wants {expected}, got {value!r}")

    def check(self):
        """Checks keys and converts values; an empty value means the default. Raises ValueError."""
        self.content = {key: value for key, value in self.content.items() if value is not None}
        for key, value in self.content.items():
            if key not in _KEYS:
                raise ValueError(f"stepscope: {self.place}{self.name} has no key {key!r}{_nearest(key, _KEYS)}: {', '.join(sorted(_KEYS))}")
            self.content[key] = self._convert(key, value)
        for name, other in _TWINS:
            if name in self.content and other in self.content and self.content[name] != self.content[other]:
                raise ValueError(f"stepscope: {self.place}{self.name}.{name} and {self.name}.{other} are the same option: "
                                 f"{self.content[name]!r} and {self.content[other]!r}")
        steps = [key for key in self.content if key in ("wait", "warmup", "active") or key.endswith("_steps") and key != "num_steps"]
        windows = [key for key in ("start_step", "num_steps") if key in self.content]
        if steps and windows:
            raise ValueError(f"stepscope: {self.place}{self.name}.{windows[0]} and {self.name}.{steps[0]} contradict each other: a window of "
                             "steps, or a schedule")
        cycles = steps + windows + [key for key in ("repeat", "skip_first") if key in self.content]
        if cycles and self.content.get("type") == "simple":
            raise ValueError(f"stepscope: {self.place}{self.name}.{cycles[0]} has no use with {self.name}.type simple, which records steps and "
                             "phases of the whole training and no operators: use advanced or pytorch")
        if self.content.get("repeat") and not steps and not windows:
            raise ValueError(f"stepscope: {self.place}{self.name}.repeat counts cycles, and nothing says what a cycle is: add active, wait or "
                             "warmup")

    def _convert(self, key, value):
        if key in _PATHS:
            if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
                raise self.wrong(key, "a path", value)
            if key == "filename" and os.path.basename(value) != value:
                raise self.wrong(key, "a name; output_dir has the path", value)
            return os.fspath(value)
        if key == "type":
            if not isinstance(value, str) or value.lower() not in _WORDS:
                raise self.wrong(key, "simple, advanced or pytorch", value)
            return value.lower()
        if key in _SWITCHES:
            if isinstance(value, (bool, str)) or value in (0, 1):
                try:
                    return _bool(str(value))
                except argparse.ArgumentTypeError:
                    pass
            raise self.wrong(key, "true or false", value)
        least = _LEAST_OF[key]
        if isinstance(value, str) and value.isdigit():
            value = int(value)
        if not _is_count(value, least):
            raise self.wrong(key, f"a whole number, {least} or more", value)
        return value


def _nearest(word, names):
    """Returns, for example, " (did you mean 'enabled'?)", or "" if no name is similar."""
    import difflib

    found = difflib.get_close_matches(str(word), names, 1, 0.75)
    return f" (did you mean {found[0]!r}?)" if found else ""


def _blocks(tree):
    """Yields each block named as in _BLOCKS, with its path, at any depth, the outer ones first.

    With YAML aliases, one dict may be in several places, even in itself.
    """
    level, seen = [("", tree)], set()
    while level:
        level = [each for each in level if isinstance(each[1], dict) and not (id(each[1]) in seen or seen.add(id(each[1])))]
        yield from ((path + name, each[name]) for path, each in level for name in _BLOCKS if name in each)
        level = [(f"{path}{key}.", value) for path, each in level for key, value in each.items()]


def _choose_block(found, place):
    """Returns the only block with keys, otherwise an empty block, or None. Raises ValueError if several have keys."""
    full = []
    for path, content in found:
        if isinstance(content, dict) and content and not any(content is other for _, other in full):
            full.append((path, content))
    if len(full) > 1:
        raise ValueError(f"stepscope: {place}there are two blocks of options, {full[0][0]!r} and {full[1][0]!r}: keep one of them")
    return full[0] if full else next((each for each in found if isinstance(each[1], dict)), None)


def _find_block(tree, place):
    """Returns the block with keys.

    A name without keys (Lightning's `profiler: simple`) is not a block, and is an error if there is no other.
    """
    if not isinstance(tree, dict):
        raise ValueError(f"stepscope: {place}keys with values are expected, got {tree!r:.60}")
    found = list(_blocks(tree))
    chosen = _choose_block(found, place)
    if chosen:
        return _Block(place, chosen[0], dict(chosen[1]))
    for name, content in found:
        if content is not None:
            raise ValueError(f"stepscope: {place}{name} wants keys with values, such as enabled: true, got {content!r:.60}")
    if not found:
        for key, value in tree.items():
            near = _nearest(key, _BLOCKS)
            if isinstance(value, dict) and near:
                raise ValueError(f"stepscope: {place}there is no block {key!r}{near}")
    return _Block(place, "profiler", {})


def _is_in(tree, parts):
    for part in parts:
        if not isinstance(tree, dict) or part not in tree:
            return False
        tree = tree[part]
    return True


def _refuse_typo(tree, parts, text):
    """Raises ValueError if an override that names no key of a block looks like a typing error of one.

    Otherwise profiling would silently stay off. Overrides of the script's own keys are left to the script.
    """
    wrong = f"stepscope: the override {text!r}"
    if parts[0] in _BLOCKS and len(parts) == 1:
        raise ValueError(f"{wrong} wants a key of the block: {parts[0]}.enabled=true")
    if parts[0] in _KEYS and len(parts) == 1 and not _is_in(tree, parts):
        raise ValueError(f"{wrong} names no block: profiler.{parts[0]}=...")
    if _is_in(tree, parts):
        return
    for number, part in enumerate(parts[:-1] or parts, 1):
        if part in _BLOCKS and number < len(parts):
            raise ValueError(f"{wrong}: {part} has no key {'.'.join(parts[number:])!r}{_nearest(parts[-1], _KEYS)}")
        near = _nearest(part, _BLOCKS)
        if near and not _is_in(tree, parts[:number]):
            raise ValueError(f"{wrong}: there is no block {part!r}{near}")


def _override(block, tree, text):
    """Applies an override such as "training.profiler.enabled=true", which may start with + or --."""
    if not text.strip():
        return
    key, sign, value = text.partition("=")
    parts = key.strip().lstrip("+-").split(".")
    if not sign:
        raise ValueError(f"stepscope: the override {text!r} has no value: profiler.enabled=true")
    if len(parts) < 2 or parts[-2] not in _BLOCKS:
        _refuse_typo(tree, parts, text)
        return
    word = value.strip()
    block.content[parts[-1]] = int(word) if word.lstrip("-").isdigit() else word or None


def _refuse_doubles(node, place, path=(), seen=None):
    """Raises ValueError if a block, or a key in a block, occurs twice: PyYAML silently takes the last one.

    Other parts of the file are not checked.
    """
    seen = set() if seen is None else seen
    if id(node) in seen or not isinstance(node.value, list):
        return
    seen.add(id(node))
    keys = set()
    for child in node.value:
        key, value = child if isinstance(child, tuple) else (None, child)
        name = key.value if key is not None and isinstance(key.value, str) else ""
        below = (*path, name)
        if name in keys and any(each in _BLOCKS for each in below):
            raise ValueError(f"stepscope: {place}line {key.start_mark.line + 1}: {'.'.join(filter(None, below))} is there twice")
        keys.update({name} - {"", "<<"})
        _refuse_doubles(value, place, below, seen)


def _read_yaml(path):
    try:
        import yaml
    except ImportError as problem:
        raise RuntimeError("from_yaml() of a file needs PyYAML; `stepscope run --config` reads it without") from problem
    try:
        with open(path, encoding="utf-8") as file:
            loader = yaml.SafeLoader(file)
            try:
                node = loader.get_single_node()
                if node is None:
                    return None
                _refuse_doubles(node, f"{os.fspath(path)}: ")
                return loader.construct_document(node)
            finally:
                loader.dispose()
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise ValueError(f"stepscope: {os.fspath(path)}: no YAML: {' '.join(str(problem).split())}") from problem


def from_yaml(source, overrides=()):
    """Returns Settings from the block `profiler` of a YAML file (which needs PyYAML) or of a dict.

    `overrides` is one text or several, such as "training.profiler.enabled=true". Raises ValueError with the wrong key
    and its file. `stepscope run --config FILE` reads the same block without a change of the script.
    """
    place = "" if isinstance(source, dict) else f"{os.fspath(source)}: "
    tree = source if isinstance(source, dict) else _read_yaml(source)
    tree = {} if tree is None else tree
    block = _find_block(tree, place)
    for text in [overrides] if isinstance(overrides, str) else overrides:
        _override(block, tree, text)
    block.check()
    given = block.content
    kind = given.get("type", "pytorch")
    steps = {name: given.get(name, given.get(f"{name}_steps")) for name in ("wait", "warmup", "active")}
    if "start_step" in given or "num_steps" in given:
        start, count = given.get("start_step", 50), given.get("num_steps", 20)
        warmup = min(1, start)
        steps = {"wait": start - warmup, "warmup": warmup, "active": count}
        given.setdefault("repeat", 1)
    is_all = kind == "pytorch"
    is_whole = not any(key in given for key in _LEAST_OF)
    return Settings(given.get("enabled", False), given.get("output_dir", given.get("dirpath", "./profiles")),
                    steps["wait"] or 0, steps["warmup"] or 0, steps["active"] or 1, given.get("repeat", 0), given.get("skip_first", 0),
                    record_shapes=given.get("record_shapes", is_all), profile_memory=given.get("profile_memory", is_all),
                    with_stack=given.get("with_stack", False), with_flops=given.get("with_flops", False), type=kind,
                    is_board=not is_whole, is_whole=is_whole, filename=given.get("filename", "profile"))


# ---- files of a cycle, and the end ----


class Handler:
    """An on_trace_ready handler that writes the files that profiling guides describe.

    File names contain the rank, except those of rank 0, so two ranks never write the same file.
    """

    def __init__(self, settings):
        self.settings = settings

    def path(self, prof, name):
        """Returns the path of a file. If there are several cycles, each has its own directory."""
        folder, rank = self.settings.output_dir, _rank()
        if self.settings.repeat != 1 and not self.settings.is_whole:
            folder = os.path.join(folder, f"iteration_{prof.step_num}")
        os.makedirs(folder, exist_ok=True)
        return os.path.join(folder, name if rank == 0 else f"rank{rank}_{name}")

    def __call__(self, prof):
        settings = self.settings
        if settings.is_whole:
            self._write_whole(prof)
            return
        names = ("chrome-trace.json.gz", "stacks.txt") if settings.prefix else ("profiler_chrome.json", "profiler_stacks.txt")
        trace, stacks, timeline, table = (self.path(prof, settings.prefix + name) for name in (*names, "memory-timeline.html", "key_averages.txt"))
        if settings.has_trace:
            prof.export_chrome_trace(trace)
        if settings.with_stack:
            prof.export_stacks(stacks, "self_cpu_time_total")
        if settings.timeline:
            prof.export_memory_timeline(timeline)
        options = {"group_by_input_shape": settings.record_shapes, "group_by_stack_n": 5 if settings.with_stack else 0}
        with open(table, "w", encoding="utf-8") as file:
            file.write(prof.key_averages(**options).table(sort_by="self_cpu_time_total", row_limit=25))

    def _write_whole(self, prof):
        """Writes profile.txt and, with type "pytorch", the trace beside it."""
        kind, name = self.settings.type, self.settings.filename
        if kind == "pytorch":
            prof.export_chrome_trace(self.path(prof, f"{name}.json"))
        with open(self.path(prof, f"{name}.txt"), "w", encoding="utf-8") as file:
            file.write(prof.report() if kind == "simple" else prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=-1))


def profiler_init(settings):
    """Returns a profiler for the training loop: use it in a `with` statement and call step() after each batch."""
    return settings.profile()


def profiler_end(prof, settings):
    """Prints all rows and the memory after the loop, on rank 0, and writes them to profiler_list.dat.

    Returns the text, or "" on other ranks and if there are no results.
    """
    if isinstance(prof, Nothing) or _rank() != 0:
        return ""
    try:
        table = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=-1)
    except (AssertionError, RuntimeError) as problem:  # no step was recorded, or the program `stepscope` is missing
        _say(f"there are no results of the profiler: {problem}")
        return ""
    text = "Profiler results:\n" + table
    print(text)
    text += _memory_text()
    try:
        with open(os.path.join(settings.output_dir, "profiler_list.dat"), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        _say(f"profiler_list.dat was not written: {problem}")
    return text


def _memory_text():
    import torch

    line = "\n" + "-" * 56 + "\n"
    if torch.cuda.is_available():
        return (f"{line}Memory requirement: {int(torch.cuda.max_memory_reserved() / 1024 / 1024)} MB{line}Memory summary:\n"
                + torch.cuda.memory_summary(_local_rank()))
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return f"{line}Memory requirement: {peak} MB of host memory; there is no GPU{line}"
