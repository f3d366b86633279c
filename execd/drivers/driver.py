# SPDX-License-Identifier: Apache-2.0
# Python. The channel is descriptor 3 (code_frame.h); PARTS are this file, divided at the marks.
#
# The code runs in __main__, whose namespace holds nothing of ours. What the code may replace (modules, built-in
# functions, sys.stdout) is kept here from before it ran. The first part is on the way of every start: it imports
# nothing that the interpreter has not loaded by itself.
import _io
import _signal
import _thread
import builtins as B
import os
import posix
import sys

MAIN = sys.modules["__main__"].__dict__
MAIN_THREAD = _thread.get_ident()
BUNDLE_MAX = 16 << 20
SOURCES_MAX = 256
# PyCF_ALLOW_TOP_LEVEL_AWAIT, PyCF_ONLY_AST, CO_COROUTINE, the flags of __future__
TOP_AWAIT = 0x2000
ONLY_AST = 0x400
IS_COROUTINE = 0x80
FUTURES = 0x1FE0000

read, write, get_ident, getpid, leave = posix.read, posix.write, _thread.get_ident, posix.getpid, posix._exit
signal, SIGINT, isinstance_, SystemExit_ = _signal.signal, int(_signal.SIGINT), isinstance, SystemExit

lock = _thread.RLock()
depth = 0
pending = False
running = False
child = False
received = b""
count = 0
flags = 0
sources = {}
last_stream = None
shell = None


# Where no KeyboardInterrupt may strike the main thread; it comes at the end.
class Guard:
    def __enter__(self):
        global depth
        if get_ident() == MAIN_THREAD:
            depth += 1
        lock.acquire()

    def __exit__(self, *_):
        global depth, pending
        lock.release()
        if get_ident() == MAIN_THREAD:
            depth -= 1
            if depth == 0 and pending and running:
                pending = False
                raise KeyboardInterrupt


guard = Guard()


def on_interrupt(_number, _frame):
    global pending
    if depth:
        pending = True
    elif running:
        raise KeyboardInterrupt


def send(kind, payload=b""):
    data = memoryview(("%s %d\n" % (kind, len(payload))).encode() + payload)
    while data:
        data = data[write(3, data) :]


def receive():
    global received
    while True:
        end = received.find(b"\n")
        if end >= 0:
            length = int(received[2:end])
            if len(received) > end + length:
                payload = received[end + 1 : end + 1 + length]
                received = received[end + 1 + length :]
                return payload
        piece = read(3, 1 << 16)
        if not piece:
            leave(0)
        received += piece


# What has been written is read before what is told next. Between runs there is nobody to wait for.
def sync():
    if running and not child:
        send("S")
        receive()


class Stream(_io.TextIOWrapper):
    def write(self, text):
        if last_stream is not self:
            switch(self)
        return put(self, text)


put = _io.TextIOWrapper.write


def switch(stream):
    global last_stream
    with guard:
        if last_stream is not None:
            flush(last_stream)
            sync()
        last_stream = stream


def stream_of(fd, name):
    raw = _io.FileIO(fd, "w", closefd=False)
    raw.name = name
    return Stream(_io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace", line_buffering=True)


def flush(stream):
    try:
        stream.flush()
    except Exception:
        pass


def flush_all():
    for stream in (sys.stdout, sys.stderr, out, err):
        flush(stream)


# A child of fork() has the streams, but not the channel.
def in_child():
    global child, lock, depth, MAIN_THREAD
    child = True
    lock = _thread.RLock()
    depth = 0
    MAIN_THREAD = get_ident()
    signal(SIGINT, _signal.default_int_handler)
    try:
        posix.close(3)
    except OSError:
        pass


def quote(text):
    if not (text.isprintable() and '"' not in text and "\\" not in text):
        text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").replace("\0", "\ufffd")
        if not text.isprintable():
            text = text.translate(CONTROLS)
    return '"' + text + '"'


CONTROLS = {c: "\\u%04x" % c for c in range(1, 32)}


def encode(value):
    if isinstance_(value, str):
        return quote(value)
    if isinstance_(value, list):
        return "[" + ",".join(map(encode, value)) + "]"
    if isinstance_(value, dict):
        return "{" + ",".join(quote(k) + ":" + encode(v) for k, v in value.items()) + "}"
    if value is None:
        return "null"
    if isinstance_(value, bool):
        return "true" if value else "false"
    return rich_number(value)


def tell(kind, value):
    data = encode(value).encode("utf-8", "replace")
    with guard:
        if child or not running:
            return
        flush_all()
        sync()
        send(kind, data)


def cut(text, most):
    return text if len(text) <= most else text[:most] + "\n... (%d characters more)" % (len(text) - most)


# The bundle of MIME types of a value.
def bundle(value):
    if shell is None and type(value).__module__ == "builtins":
        return {"text/plain": cut(repr(value), BUNDLE_MAX >> 3)}
    load(1)
    return rich_bundle(value)


def display(*values, **options):
    """Show values by their richest representation."""
    load(1)
    return rich_display(*values, **options)


class StdinNotImplementedError(NotImplementedError):
    pass


def no_input(*_):
    raise StdinNotImplementedError("input() has nobody to ask here: give the value in the code")


def load(part):
    if PARTS[part]:
        text, PARTS[part] = PARTS[part], None
        exec(compile(text, "<osbx>", "exec"), globals())


# Modules that need something done to them once they are there.
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in HOOKED:
            load(1)
            return rich_spec(name, path, target)
        return None


HOOKED = {"matplotlib.pyplot", "IPython"}


def evaluate(code):
    global flags
    flags |= code.co_flags & FUTURES
    if code.co_flags & IS_COROUTINE:
        load(2)
        return run_coroutine(eval(code, MAIN))
    return eval(code, MAIN)


def parse(source, name):
    try:
        return compile(source, name, "exec", ONLY_AST | TOP_AWAIT | flags, True)
    except SyntaxError:
        load(1)
        other = rich_source(source)
        if other is None:
            raise
        return compile(other, name, "exec", ONLY_AST | TOP_AWAIT | flags, True)


def execute(source, name):
    tree = parse(source, name)
    last = None
    if tree.body and type(tree.body[-1]).__name__ == "Expr" and not source.rstrip().endswith(";"):
        last = tree.body.pop()
    if tree.body:
        evaluate(compile(tree, name, "exec", TOP_AWAIT | flags, True))
    if last is not None:
        # A tree is made of what made it: its own classes need no module.
        whole = compile("0", name, "eval", ONLY_AST)
        whole.body = last.value
        value = evaluate(compile(whole, name, "eval", TOP_AWAIT | flags, True))
        if value is not None:
            MAIN["_"] = value
            return bundle(value)
    return None


def keep_source(name, source):
    sources[name] = source
    if len(sources) > SOURCES_MAX:
        gone = next(iter(sources))
        del sources[gone]
        cache = getattr(sys.modules.get("linecache"), "cache", None)
        if cache is not None:
            cache.pop(gone, None)
    if "linecache" in sys.modules:
        load(1)
        show_source(name)


# The code has returned, in whatever way.
def run_end(error):
    global depth, pending, running
    depth += 1
    if error is not None:
        load(1)
        try:
            report(error)
        except BaseException:
            tell("E", {"ename": type(error).__name__, "evalue": "(an error that cannot be shown)", "traceback": []})
    with guard:
        flush_all()
        sync()
        running = False
        pending = False
        send("F", b'{"execution_count":%d}' % count)
    depth = 0


def run(source):
    global count, running
    with guard:
        count += 1
        running = True
        name = "<cell %d>" % count
    error = None
    try:
        signal(SIGINT, on_interrupt)
        keep_source(name, source)
        found = execute(source, name)
        if "matplotlib.pyplot" in sys.modules:
            load(1)
            show_figures()
        if found is not None:
            tell("X", found)
    except BaseException as e:
        error = e
    if child:
        child_end(error)
    try:
        run_end(error)
    except KeyboardInterrupt:
        run_end(None)


# The code has forked, and its child has come to its end.
def child_end(error):
    status = 0
    try:
        if isinstance_(error, SystemExit_):
            status = error.code if isinstance_(error.code, int) else 0 if error.code is None else 1
        elif error is not None:
            status = 1
            sys.excepthook(type(error), error, error.__traceback__)
        flush_all()
    finally:
        leave(status & 255)


out = stream_of(1, "<stdout>")
err = stream_of(2, "<stderr>")


def begin():
    posix.set_inheritable(3, False)
    sys.stdout = sys.__stdout__ = out
    sys.stderr = sys.__stderr__ = err
    sys.argv = [""]
    signal(SIGINT, on_interrupt)
    posix.register_at_fork(before=flush_all, after_in_child=in_child)
    os.environ.setdefault("MPLBACKEND", "Agg")
    sys.meta_path.insert(0, Finder)
    B.input = no_input
    B.display = display
    try:
        import faulthandler

        faulthandler.enable(2)
    except (ImportError, RuntimeError):
        pass
    send("H", b'{"language":"python","version":"%d.%d.%d"}' % sys.version_info[:3])
    while True:
        run(receive().decode("utf-8", "replace"))


begin()
#%%
# What the display protocol, errors, matplotlib and IPython need.
_b64 = None
REPRS = (
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_latex_", "text/latex"),
    ("_repr_json_", "application/json"),
    ("_repr_javascript_", "application/javascript"),
    ("_repr_pdf_", "application/pdf"),
)
DEPTH_MAX = 24
PARTS_MAX = 190000
parts = 0
EVALUE_MAX = 64 << 10
TRACE_MAX = 256 << 10


def rich_number(value):
    if isinstance_(value, int):
        return str(int(value))
    if isinstance_(value, float):
        return repr(value) if value - value == 0 else "null"
    return quote(str(value))


def text_of(data):
    global _b64
    if isinstance_(data, (bytes, bytearray, memoryview)):
        if _b64 is None:
            from binascii import b2a_base64 as _b64
        return _b64(bytes(data), newline=False).decode("ascii")
    return data


# What PID 1 takes: no deeper than it reads, names that are text. It reads 200,000 parts.
def plain(value, level=0):
    global parts
    parts += 1
    if level > DEPTH_MAX or parts > PARTS_MAX:
        return "..." if parts > PARTS_MAX else str(value)
    if isinstance_(value, dict):
        return {str(k): plain(v, level + 1) for k, v in value.items()}
    if isinstance_(value, (list, tuple)):
        return [plain(v, level + 1) for v in value]
    return text_of(value)


def bounded(found):
    global parts
    left = BUNDLE_MAX
    kept = {}
    note = ""
    parts = 0
    for kind, data in found.items():
        data = plain(data)
        if parts > PARTS_MAX and not isinstance_(data, str):
            note += " (%s is left out: it has too many parts)" % kind
            continue
        size = len(quote(data) if isinstance_(data, str) else encode(data))
        if size > left and kind == "text/plain":
            data = cut(data, left >> 3)
            size = len(data)
        elif size > left:
            note += " (%s of %d bytes is left out: a result has at most %d)" % (kind, size, BUNDLE_MAX)
            continue
        left -= size
        kept[kind] = data
    if note:
        kept["text/plain"] = kept.get("text/plain", "") + note
    return kept


def call(value, name):
    method = getattr(value, name, None)
    if method is None or isinstance_(value, type) or not callable(method):
        return None
    try:
        return method()
    except NotImplementedError:
        return None
    except Exception:
        import traceback

        traceback.print_exc()
        return None


def rich_bundle(value, include=None, exclude=None):
    if shell is not None:
        found, _ = shell.display_formatter.format(value, include, exclude)
        if found:
            return bounded(found)
    found = {}
    # Some classes answer to every name.
    honest = getattr(value, "_osbx_no_such_repr_", None) is None
    own = call(value, "_repr_mimebundle_") if honest else None
    if isinstance_(own, tuple):
        own = own[0]
    if isinstance_(own, dict):
        found.update(own)
    for name, kind in REPRS if honest else ():
        if kind not in found:
            data = call(value, name)
            if isinstance_(data, tuple):
                data = data[0]
            if data is not None:
                found[kind] = data
    plot = sys.modules.get("matplotlib.pyplot")
    if plot is not None and isinstance_(value, getattr(plot, "Figure", ())) and not found:
        found["image/png"] = png_of(value)
        plot.close(value)
    if "text/plain" not in found:
        found["text/plain"] = repr(value)
    for kind in list(found):
        if (include and kind not in include) or (exclude and kind in exclude):
            del found[kind]
    return bounded(found)


def rich_display(*values, include=None, exclude=None, raw=False, **_):
    for value in values:
        tell("D", bounded(value) if raw and isinstance_(value, dict) else rich_bundle(value, include, exclude))


def show_source(name):
    text = sources.get(name)
    if text is not None:
        import linecache

        linecache.cache[name] = (len(text), None, text.splitlines(True), name)


def safe_text(error):
    try:
        return str(error)
    except Exception:
        return "(an error without a text: its __str__ failed)"


# Without a module, for when the code has broken what those are made of.
def bare_trace(error, trace):
    lines = ["Traceback (most recent call last):"]
    while trace is not None:
        name, number = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        lines.append('  File "%s", line %d, in %s' % (name, number, trace.tb_frame.f_code.co_name))
        text = sources.get(name, "").split("\n")[number - 1 : number]
        lines.extend("    " + line.strip() for line in text)
        trace = trace.tb_next
    return lines + ["%s: %s" % (type(error).__name__, safe_text(error))]


# Without our own frames, which stand where the code called us, and where it was interrupted.
def told(found):
    todo, seen = [found], set()
    while todo:
        one = todo.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            if one.stack is not None:
                one.stack[:] = [frame for frame in one.stack if frame.filename != "<osbx>"]
            todo += [one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ())]
    return found


def report(error):
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == "<osbx>":
        trace = trace.tb_next
    try:
        import traceback

        for name in sources:
            show_source(name)
        found = told(traceback.TracebackException(type(error), error, trace))
        lines = [line.rstrip("\n") for line in found.format()]
    except Exception:
        lines = bare_trace(error, trace)
    half = TRACE_MAX // 2
    text = "\n".join(lines)
    if len(text) > TRACE_MAX:
        lines = [text[:half], "...", text[-half:]]
    tell("E", {"ename": type(error).__name__, "evalue": cut(safe_text(error), EVALUE_MAX), "traceback": lines})


def show_figures(*_, **__):
    plot = sys.modules.get("matplotlib.pyplot")
    if plot is None or not hasattr(plot, "get_fignums"):
        return
    if "agg" != plot.get_backend().lower():
        return
    for number in plot.get_fignums():
        figure = plot.figure(number)
        tell("D", bounded({"image/png": png_of(figure), "text/plain": repr(figure)}))
    plot.close("all")


def png_of(figure):
    data = _io.BytesIO()
    figure.savefig(data, format="png", bbox_inches="tight")
    return data.getvalue()


def hook_pyplot(module):
    module.show = show_figures


def hook_ipython(_module):
    try:
        shell_make()
    except Exception:
        pass


HOOKS = {"matplotlib.pyplot": hook_pyplot, "IPython": hook_ipython}


class Hooked:
    def __init__(self, loader, hook):
        self.loader, self.hook = loader, hook

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        self.hook(module)

    def __getattr__(self, name):
        return getattr(self.loader, name)


def rich_spec(name, _path, _target):
    import importlib.util

    HOOKED.discard(name)
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.loader is not None:
        spec.loader = Hooked(spec.loader, HOOKS[name])
    return spec


# IPython's shell, for what needs it: magics, and whoever imports IPython.
def shell_make():
    global shell
    import IPython

    if shell is not None:
        return
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    class Publisher(DisplayPublisher):
        def publish(self, data, metadata=None, source=None, **_):
            tell("D", bounded(data))

    config = Config()
    config.HistoryManager.enabled = False
    InteractiveShell.display_pub_class = Publisher
    before = sys.stdout, sys.stderr, sys.displayhook, sys.excepthook
    kept = dict(MAIN)
    shell = InteractiveShell.instance(config=config, user_module=sys.modules["__main__"], user_ns=MAIN)
    sys.stdout, sys.stderr, sys.displayhook, sys.excepthook = before
    # Its exit and quit are of a prompt's, and it overwrites names that the user may have given.
    for name in "exit", "quit":
        MAIN.pop(name, None)
    MAIN.update(kept)
    shell.enable_matplotlib = lambda gui=None: ("agg", "agg")
    B.input = no_input


def rich_source(source):
    if not any(line.lstrip()[:1] in ("%", "!", "?") or line.rstrip().endswith("?") or "= %" in line or "= !" in line
               or "=%" in line or "=!" in line for line in source.splitlines()):
        return None
    try:
        shell_make()
    except ImportError:
        return None
    return shell.transform_cell(source)
#%%
# await outside of a function: one loop for all runs.
import asyncio as _asyncio

event_loop = _asyncio.new_event_loop()
_asyncio.set_event_loop(event_loop)


def run_coroutine(coroutine):
    task = event_loop.create_task(coroutine)
    try:
        return event_loop.run_until_complete(task)
    except BaseException:
        if not task.done():
            task.cancel()
            try:
                event_loop.run_until_complete(task)
            except BaseException:
                pass
        raise
