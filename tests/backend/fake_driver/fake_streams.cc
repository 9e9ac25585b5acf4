// The stand-in's streams, events, captures and graphs: work that is done at once, late, or written down.
#include "tests/backend/fake_driver/fake_state.h"

#include <algorithm>
#include <chrono>

namespace ng::fake {
namespace {

constexpr CUresult ILLEGAL_STATE = 401, ISOLATION = 905, CAPTURED_EVENT = 907;

Event* event_of(CUevent handle) { return alive<Event>(state().events, handle); }
Graph* graph_of(void* handle, bool is_exec)
{
    Graph* graph = alive<Graph>(state().graphs, handle);
    return graph && graph->is_exec == is_exec ? graph : nullptr;
}

double now_milliseconds()
{
    if (state().block_us) return double(state().launched_blocks) * state().block_us * 1e-3;
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void run_first(Stream& stream)
{
    Operation first = std::move(stream.queue.front());
    stream.queue.pop_front();
    if (first.waits_for)
        while (!first.waits_for->is_done) run_first(*first.waits_for->stream);
    if (first.run) first.run();
}

bool is_legacy(const Stream& stream) { return stream.context->legacy.get() == &stream; }

CUresult spoil(Capture& capture, CUresult code)
{
    capture.is_spoilt = true;
    return code;
}

// A look at a stream or event: what waits in the queue goes on a step.
CUresult look(Stream* stream, bool is_done)
{
    if (is_done) return CUDA_SUCCESS;
    if (stream && !stream->queue.empty()) run_first(*stream);
    return CUDA_ERROR_NOT_READY;
}

void leave_capture(const std::shared_ptr<Capture>& capture)
{
    for (auto& [stream, unused] : state().streams)
        if (stream->capture == capture) stream->capture.reset();
    state().captures.erase(capture.get());
}

}  // namespace

Stream* stream_of(CUstream handle)
{
    if (reinterpret_cast<uintptr_t>(handle) <= 2) return current() ? current()->legacy.get() : nullptr;
    return alive<Stream>(state().streams, handle);
}

void drain(Stream& stream)
{
    while (!stream.queue.empty()) run_first(stream);
}

void drain_context(const Context& context)
{
    for (auto& [stream, unused] : state().streams)
        if (stream->context == &context) drain(*stream);
}

CUresult enqueue(Stream& stream, Operation operation)
{
    if (stream.context->broken) return stream.context->broken;
    if (stream.capture) {
        if (stream.capture->is_spoilt) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        if (&stream != stream.capture->origin) stream.capture->open.insert(&stream);
        stream.capture->nodes.push_back(std::move(operation));
        return CUDA_SUCCESS;
    }
    if (is_legacy(stream)) {
        for (auto& [other, unused] : state().streams) {
            if (other->context != stream.context || !other->is_blocking) continue;
            if (other->capture) return spoil(*other->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
            drain(*other);
        }
    }
    stream.queue.push_back(std::move(operation));
    // The legacy stream is never late: whatever follows in a blocking stream comes after it.
    if (!state().is_deferred || is_legacy(stream)) drain(stream);
    return stream.context->broken;
}

CUresult refuse_in_capture()
{
    const int mode = state().capture_modes[this_thread()];
    if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    for (Capture* capture : state().captures)
        if (capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mode == CU_STREAM_CAPTURE_MODE_GLOBAL)
            result = spoil(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return result;
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int)
{
    if (!current()) return CUDA_ERROR_INVALID_CONTEXT;
    auto* made = new Stream;
    made->context = current();
    made->is_blocking = !(flags & CU_STREAM_NON_BLOCKING);
    state().streams.emplace(made, made);
    return *stream = reinterpret_cast<CUstream>(made), CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream)
{
    Stream* dead = alive<Stream>(state().streams, stream);
    if (!dead) return CUDA_ERROR_INVALID_HANDLE;
    drain(*dead);
    for (auto& [event, unused] : state().events)
        if (event->captured_in == dead) event->captured_in = nullptr;
    if (dead->capture) leave_capture(dead->capture);
    state().streams.erase(dead);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    Stream* s = stream_of(stream);
    if (!s) return CUDA_ERROR_INVALID_HANDLE;
    if (s->capture) return spoil(*s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (is_legacy(*s)) return enqueue(*s, {});
    return drain(*s), s->context->broken;
}

CUresult cuStreamQuery(CUstream stream)
{
    Stream* s = stream_of(stream);
    if (!s) return CUDA_ERROR_INVALID_HANDLE;
    if (s->capture) return spoil(*s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (const CUresult refused = refuse_in_capture()) return refused;
    return s->context->broken ? s->context->broken : look(s, s->queue.empty());
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context)
{
    Stream* s = stream_of(stream);
    if (!s) return CUDA_ERROR_INVALID_HANDLE;
    return *context = reinterpret_cast<CUcontext>(s->context), CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user)
{
    Stream* s = stream_of(stream);
    if (!s || !function) return CUDA_ERROR_INVALID_VALUE;
    return enqueue(*s, {[=] { function(user); }, nullptr});
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned)
{
    Stream* s = stream_of(stream);
    Event* e = event_of(event);
    if (!s || !e) return CUDA_ERROR_INVALID_HANDLE;
    if (e->capture) {
        if (is_legacy(*s)) return spoil(*e->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        if (s->capture && s->capture != e->capture) return spoil(*s->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
        if (e->captured_in != s) s->capture = e->capture, e->capture->open.erase(e->captured_in);
        if (s != e->capture->origin) e->capture->open.insert(s);
        return CUDA_SUCCESS;
    }
    if (!e->mark) return CUDA_SUCCESS;
    if (s->capture) return spoil(*s->capture, ISOLATION);
    return enqueue(*s, {nullptr, e->mark});
}

// ---- events ---------------------------------------------------------------------------------------------------------

CUresult cuEventCreate(CUevent* event, unsigned flags)
{
    if (!current()) return CUDA_ERROR_INVALID_CONTEXT;
    auto* made = new Event;
    made->context = current();
    made->has_time = !(flags & CU_EVENT_DISABLE_TIMING);
    state().events.emplace(made, made);
    return *event = reinterpret_cast<CUevent>(made), CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    Stream* s = stream_of(stream);
    Event* e = event_of(event);
    if (!s || !e || s->context != e->context) return CUDA_ERROR_INVALID_HANDLE;
    if (s->capture) {
        e->capture = s->capture, e->captured_in = s, e->mark.reset();
        return s->capture->is_spoilt ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    }
    const auto mark = std::make_shared<Mark>(Mark{s, false, 0});
    e->mark = mark, e->capture.reset(), e->captured_in = nullptr;
    return enqueue(*s, {[mark] { mark->milliseconds = now_milliseconds(), mark->is_done = true; }, nullptr});
}

CUresult cuEventQuery(CUevent event)
{
    Event* e = event_of(event);
    if (!e) return CUDA_ERROR_INVALID_HANDLE;
    if (e->capture) return spoil(*e->capture, CAPTURED_EVENT);
    if (const CUresult refused = refuse_in_capture()) return refused;
    if (e->context->broken) return e->context->broken;
    return !e->mark ? CUDA_SUCCESS : look(e->mark->is_done ? nullptr : e->mark->stream, e->mark->is_done);
}

CUresult cuEventSynchronize(CUevent event)
{
    Event* e = event_of(event);
    if (!e) return CUDA_ERROR_INVALID_HANDLE;
    if (e->capture) return spoil(*e->capture, CAPTURED_EVENT);
    while (e->mark && !e->mark->is_done) run_first(*e->mark->stream);
    return e->context->broken;
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end)
{
    Event *b = event_of(begin), *e = event_of(end);
    if (!b || !e || !b->has_time || !e->has_time || !b->mark || !e->mark) return CUDA_ERROR_INVALID_HANDLE;
    if (!b->mark->is_done || !e->mark->is_done) return CUDA_ERROR_NOT_READY;
    return *milliseconds = float(e->mark->milliseconds - b->mark->milliseconds), CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event)
{
    Event* dead = event_of(event);
    if (!dead) return CUDA_ERROR_INVALID_HANDLE;
    return state().events.erase(dead), CUDA_SUCCESS;
}

// ---- captures and graphs ----------------------------------------------------------------------------------------------

CUresult cuStreamBeginCapture(CUstream stream, int mode)
{
    Stream* s = stream_of(stream);
    if (!s) return CUDA_ERROR_INVALID_HANDLE;
    if (is_legacy(*s)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (s->capture) return ILLEGAL_STATE;
    s->capture = std::make_shared<Capture>();
    s->capture->id = state().next_capture++;
    s->capture->origin = s;
    s->capture->mode = mode;
    state().captures.insert(s->capture.get());
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph)
{
    Stream* s = stream_of(stream);
    if (!s) return CUDA_ERROR_INVALID_HANDLE;
    *graph = nullptr;
    const std::shared_ptr<Capture> capture = s->capture;
    if (!capture) return ILLEGAL_STATE;
    if (capture->origin != s) return spoil(*capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    const bool is_whole = capture->open.empty(), is_spoilt = capture->is_spoilt;
    leave_capture(capture);
    if (is_spoilt) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!is_whole) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    auto* made = new Graph;
    made->nodes = capture->nodes;
    state().graphs.emplace(made, made);
    return *graph = reinterpret_cast<CUgraph>(made), CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, int* status)
{
    Stream* s = stream_of(stream);
    if (!s) return CUDA_ERROR_INVALID_HANDLE;
    if (is_legacy(*s))
        for (auto& [other, unused] : state().streams)
            if (other->context == s->context && other->is_blocking && other->capture) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = !s->capture ? CU_STREAM_CAPTURE_STATUS_NONE
            : s->capture->is_spoilt ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo(CUstream stream, int* status, uint64_t* id, CUgraph* graph, const CUgraphNode** before, size_t* count)
{
    if (const CUresult result = cuStreamIsCapturing(stream, status)) return result;
    const Stream& s = *stream_of(stream);
    if (id) *id = s.capture ? s.capture->id : 0;
    // The graph that grows has no handle here; nobody but a reader of graphs asks for it.
    if (graph) *graph = nullptr;
    if (before) *before = nullptr;
    if (count) *count = 0;
    return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(int* mode)
{
    if (!mode || *mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    return std::swap(*mode, state().capture_modes[this_thread()]), CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long)
{
    const Graph* from = graph_of(graph, false);
    if (!from) return CUDA_ERROR_INVALID_VALUE;
    auto* made = new Graph(*from);
    made->is_exec = true;
    for (Object* object : made->objects) object->references++;
    state().graphs.emplace(made, made);
    return *exec = reinterpret_cast<CUgraphExec>(made), CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    const Graph* graph = graph_of(exec, true);
    Stream* s = stream_of(stream);
    if (!graph || !s) return CUDA_ERROR_INVALID_VALUE;
    for (const Operation& node : graph->nodes)
        if (const CUresult result = enqueue(*s, node)) return result;
    return CUDA_SUCCESS;
}

namespace {

CUresult destroy_graph(Graph* graph)
{
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    for (Object* object : graph->objects) drop_object(*object, 1);
    return state().graphs.erase(graph), CUDA_SUCCESS;
}

}  // namespace

CUresult cuGraphExecDestroy(CUgraphExec exec) { return destroy_graph(graph_of(exec, true)); }
CUresult cuGraphDestroy(CUgraph graph) { return destroy_graph(graph_of(graph, false)); }

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count)
{
    Graph* g = graph_of(graph, false);
    if (!g || !count) return CUDA_ERROR_INVALID_VALUE;
    if (nodes)
        for (size_t i = 0; i < std::min(*count, g->nodes.size()); i++) nodes[i] = reinterpret_cast<CUgraphNode>(&g->nodes[i]);
    return *count = g->nodes.size(), CUDA_SUCCESS;
}

void drop_object(Object& object, uint64_t count)
{
    object.references -= std::min(count, object.references);
    if (object.references) return;
    object.destroy(object.user);
    state().objects.erase(&object);
}

CUresult cuUserObjectCreate(CUuserObject* object, void* user, CUhostFn destroy, unsigned references, unsigned)
{
    if (!destroy || !references) return CUDA_ERROR_INVALID_VALUE;
    auto* made = new Object{user, destroy, references};
    state().objects.emplace(made, made);
    return *object = reinterpret_cast<CUuserObject>(made), CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned count)
{
    Object* o = alive<Object>(state().objects, object);
    if (!o) return CUDA_ERROR_INVALID_VALUE;
    return drop_object(*o, count), CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags)
{
    Graph* g = graph_of(graph, false);
    Object* o = alive<Object>(state().objects, object);
    if (!g || !o) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) g->objects.push_back(o);
    if (!(flags & CU_GRAPH_USER_OBJECT_MOVE)) o->references += count;
    return CUDA_SUCCESS;
}

}  // namespace ng::fake
