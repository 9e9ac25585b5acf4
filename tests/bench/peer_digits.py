"""One step of training of the digits example's network, by libng and by PyTorch's eager mode: same sizes, same arithmetic."""
import ctypes
import struct

import numpy as np

from peer_library import ConvDesc, PoolDesc, Program, pointers, room, shape_of
from peer_timing import Peer, calls
import ng

BATCH, SIDE, HIDDEN, CLASSES, RATE = 32, 8, 64, 10, 0.01
WEIGHTS = [(16, 1, 3, 3), (16, 1, 1), (32, 16, 3, 3), (32, 1, 1), (512, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,)]
FAN_IN = [9, 0, 144, 0, 512, 0, HIDDEN, 0]


def first_weights(random):
    return [random.uniform(-1, 1, dims).astype(np.float32) * np.float32((6 / fan) ** 0.5 if fan else 0) for dims, fan in zip(WEIGHTS, FAN_IN)]


def paged(values):
    out = room(values.shape, values.dtype)
    out[...] = values
    return out


def parse(c, scope, source, names, values):
    return c.ng_parse(scope, source.encode(), names.encode(), pointers(values), len(values))


def network(c, scope, images, w):
    """Pixels to one number a class, as examples/digits_model.c has it."""
    same, halve = ConvDesc(), PoolDesc(kind=ng.RECORDS.enums["ng_pool_kind"]["NG_POOL_MAX"])
    for axis in range(2):
        same.pad_lo[axis] = same.pad_hi[axis] = 1
        halve.window[axis] = 2
    x = parse(c, scope, "f32(x) / 16", "x", [images])
    for i in (0, 2):
        x = parse(c, scope, "relu(x + b)", "x,b", [c.ng_conv(x, w[i], ctypes.addressof(same)), w[i + 1]])
    x = c.ng_pool(x, ctypes.addressof(halve))
    dims = (ctypes.c_int64 * 2)(BATCH, 512)
    x = c.ng_reshape(x, ctypes.addressof(dims), 2)
    return parse(c, scope, "relu(x @ a + b) @ c + d", "x,a,b,c,d", [x, *w[4:]])


def train_program(library, images, labels, weights):
    """Images, labels, weights, momenta -> the loss, and the new weights and momenta in place."""
    count = len(weights)
    args = [("u8", images), ("i32", labels)] + [("f32", w) for w in weights] + [("f32", paged(np.zeros_like(w))) for w in weights]

    def build(c, scope, params):
        scores = network(c, scope, params[0], params[2:2 + count])
        classes = c.ng_iota(scope, ctypes.byref(shape_of("i32", np.empty(CLASSES, np.int32))), 0)
        loss = parse(c, scope, "mean(sum(where(k == y[:, None], -log_softmax(s, 1), 0), 1))", "s,y,k", [scores, params[1], classes])
        gradients, wrt, of = pointers([None] * count), pointers(params[2:2 + count]), pointers([loss])
        library.call("ng_grad", ctypes.addressof(of), None, 1, ctypes.addressof(wrt), ctypes.addressof(gradients), count)
        rate = c.ng_scalar(scope, ng.CODE_OF["f32"], 0)
        rest = [[params[2 + i], params[2 + count + i], gradients[i], rate] for i in range(count)]
        return [loss, *(parse(c, scope, "w - rate * (0.9 * m + g)", "w,m,g,rate", four) for four in rest),
                *(parse(c, scope, "0.9 * m + g", "w,m,g", four[:3]) for four in rest)]

    outs = [("f32", room((), np.float32))] + args[2:]
    return Program(library, build, args, outs, [-1, *range(2, 2 + 2 * count)], struct.pack("f", RATE))


def torch_step(torch, images, labels, weights):
    """A function that takes one step and gives the loss."""
    f = torch.nn.functional
    x, y = torch.from_numpy(images.copy()), torch.from_numpy(labels.astype(np.int64))
    w = [torch.from_numpy(v.copy()).requires_grad_() for v in weights]
    optimizer = torch.optim.SGD(w, lr=RATE, momentum=0.9)

    def step():
        optimizer.zero_grad()
        h = x.to(torch.float32) / 16
        h = f.relu(f.conv2d(h, w[0], w[1].flatten(), padding=1))
        h = f.relu(f.conv2d(h, w[2], w[3].flatten(), padding=1))
        h = f.max_pool2d(h, 2).reshape(BATCH, -1)
        loss = f.cross_entropy(f.relu(h @ w[4] + w[5]) @ w[6] + w[7], y)
        loss.backward()
        optimizer.step()
        return loss
    return step


def measure_digits(watch, libraries):
    random = np.random.default_rng(4)
    images = paged(random.integers(0, 17, (BATCH, 1, SIDE, SIDE), np.uint8))
    labels = paged(random.integers(0, CLASSES, BATCH).astype(np.int32))
    first, peers, losses = first_weights(random), [], []
    for threads, library in libraries.items():
        program = train_program(library, images, labels, [paged(w) for w in first])
        program.once()
        losses.append(float(program.kept[1][0][1]))
        peers.append(Peer("ng", threads, program.repeat))
    try:
        import torch
    except ImportError:
        print("# SKIPPED PyTorch: python3-torch is not installed")
        torch = None
    for threads in libraries if torch else ():
        def repeat(count, step=torch_step(torch, images, labels, first), threads=threads):
            torch.set_num_threads(threads)
            return calls(step)(count)
        peers.append(Peer("torch eager", threads, repeat))
        losses.append(float(torch_step(torch, images, labels, first)().detach()))
    if max(losses) - min(losses) > 1e-4 * abs(losses[0]):
        raise SystemExit(f"The first losses should be one number: {losses}")
    return watch.measure("digits", f"training step, batch {BATCH}", 0, "", peers)
