"""Snapshots of programs built on public PyTorch libraries, with random weights, each counted by PyTorch, by a walk over the pickle's
events, and by `cistern fit`.

usage: snapshot_programs.py DISTRIBUTION FOLDER [SECONDS]

Each program runs in a process of its own, for 25 seconds at most, and eight at once. FOLDER gets the snapshots. Prints a line of
JSON for each: what the three counted, and which figures are equal. A program that fails is replaced by a simpler one of the same
library, and the reason is in its line. What has not begun after SECONDS (default 150) is left out.
"""
import concurrent.futures, itertools, json, os, pathlib, pickle, random, signal, subprocess, sys, tempfile, threading, time

DEVICE, GIB, MIB = "cuda", 1 << 30, 1 << 20
PROGRAMS = []  # Of (function, options).


def program(library, **options):
    """A program makes what it needs, and returns a step that takes a size of 1 or more.

    limit: GiB that PyTorch may take; steps grow until a request is refused. Without it, sizes are drawn from 1 to 4.
    expandable: expandable segments. late: recording begins after the first step. dump="refusal": the snapshot is taken by an observer
    of the refusal, instead of at the end. Others are of _record_memory_history.
    """
    def add(function):
        PROGRAMS.append((function, {"library": library, **options}))
        return function
    return add


def loader(torch, *tensors, batch, workers=0):
    data = torch.utils.data.TensorDataset(*tensors)
    return torch.utils.data.DataLoader(data, batch, shuffle=True, num_workers=workers, pin_memory=DEVICE == "cuda")


def moved(tensors):
    return [each.to(DEVICE, non_blocking=True) for each in tensors]


def update(optimizer, loss):
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def llama(layers=6):
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(hidden_size=512, intermediate_size=1408, num_hidden_layers=layers, num_attention_heads=8,
                                        num_key_value_heads=4, vocab_size=8000)).to(DEVICE)


@program("torchvision")
@program("torchvision", limit=3, dump="refusal")
def detection_train(torch):
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_fpn
    model = fasterrcnn_mobilenet_v3_large_fpn(weights=None, weights_backbone=None, num_classes=5).to(DEVICE).train()
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    def step(size):
        images = [torch.rand(3, random.randrange(200, 500), random.randrange(200, 500), device=DEVICE) for _ in range(size)]
        corners = [torch.rand(random.randrange(1, 9), 2, device=DEVICE) * 100 for _ in images]
        targets = [{"boxes": torch.cat([each, each + 60], 1), "labels": torch.ones(len(each), dtype=torch.int64, device=DEVICE)}
                   for each in corners]
        update(optimizer, sum(model(images, targets).values()))
    return step


@program("timm", stacks="all", context="alloc")
@program("timm", limit=2, expandable=True)
def vit_checkpointing(torch):
    import timm
    model = timm.create_model("vit_small_patch16_224", pretrained=False, num_classes=100).to(DEVICE)
    model.set_grad_checkpointing(True)
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler(DEVICE)
    def step(size):
        with torch.autocast(DEVICE, torch.float16):
            loss = model(torch.randn(8 * size, 3, 224, 224, device=DEVICE)).float().logsumexp(1).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
    return step


@program("transformers")
@program("transformers", expandable=True, max_entries=2500)
@program("transformers", limit=2, dump="refusal", context="alloc")
def cached_decoding(torch):
    model = llama().half().eval()
    @torch.no_grad()
    def step(size):
        ids, cache = torch.randint(0, 8000, (4 * size, 300 * size), device=DEVICE), None
        for _ in range(24):
            output = model(ids, past_key_values=cache, use_cache=True)
            ids, cache = output.logits[:, -1:].argmax(-1), output.past_key_values
    return step


@program("torch_geometric")
@program("torch_geometric", limit=2)
def graph_attention(torch):
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import GATConv, global_mean_pool
    first, second = GATConv(32, 32, heads=4).to(DEVICE), GATConv(128, 16).to(DEVICE)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()])
    def graph():
        nodes = int(10 ** random.uniform(2, 4))
        return Data(x=torch.randn(nodes, 32), edge_index=torch.randint(0, nodes, (2, 8 * nodes)))
    def step(size):
        for graphs in DataLoader([graph() for _ in range(6 * size)], batch_size=3 * size, pin_memory=DEVICE == "cuda"):
            graphs = graphs.to(DEVICE, non_blocking=True)
            hidden = second(first(graphs.x, graphs.edge_index).relu(), graphs.edge_index)
            update(optimizer, global_mean_pool(hidden, graphs.batch).logsumexp(1).mean())
    return step


@program("sentence_transformers")
@program("sentence_transformers", limit=1)
def semantic_search(torch):
    from sentence_transformers import util
    from transformers import BertConfig, BertModel
    model = BertModel(BertConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)).to(DEVICE).eval()
    kept = []
    @torch.no_grad()
    def step(size):
        ids = torch.randint(0, 30000, (16 * size, random.randrange(16, 256)), device=DEVICE)
        kept.append(model(ids).last_hidden_state.mean(1))
        corpus = torch.randn(40000 * size, 256, device=DEVICE)
        util.semantic_search(torch.cat(kept), corpus, query_chunk_size=64, corpus_chunk_size=30000 * size, top_k=10)
    return step


@program("lightning")
@program("lightning", expandable=True)
def trainer(torch):
    import lightning
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(256, 2048), torch.nn.GELU(), torch.nn.LayerNorm(2048), torch.nn.Linear(2048, 256))
        def training_step(self, batch, _):
            return (self.layers(batch[0]) - batch[0]).square().mean()
        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())
    module = Module()
    def step(size):
        fit = lightning.Trainer(accelerator=DEVICE, devices=1, max_steps=8, precision="bf16-mixed", logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
        fit.fit(module, loader(torch, torch.randn(4096 * size, 256), batch=512 * size))
    return step


@program("lightning", limit=1)
def fabric(torch):
    import lightning, torchvision
    fabric = lightning.Fabric(accelerator=DEVICE, devices=1, precision="bf16-mixed")
    model = torchvision.models.resnet18(num_classes=10)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), 0.01))
    def step(size):
        images = torch.randn(16 * size, 3, 128, 128)
        for (batch,) in fabric.setup_dataloaders(loader(torch, images, batch=8 * size)):
            fabric.backward(model(batch).logsumexp(1).mean())
            optimizer.step()
            optimizer.zero_grad()
    return step


@program("peft")
@program("peft", limit=3, expandable=True, dump="refusal")
def lora(torch):
    from peft import LoraConfig, get_peft_model
    model = get_peft_model(llama().bfloat16(), LoraConfig(r=8, lora_dropout=0.05, target_modules=["q_proj", "v_proj"]))
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad])
    def step(size):
        ids = torch.randint(0, 8000, (2 * size, random.randrange(100, 600)), device=DEVICE)
        update(optimizer, model(input_ids=ids, labels=ids).loss)
    return step


@program("accelerate")
def accumulation(torch):
    from accelerate import Accelerator
    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 4)
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters()))
    def step(size):
        for (batch,) in accelerator.prepare(loader(torch, torch.randn(32, 64 * size, 256), batch=8, workers=2)):
            with accelerator.accumulate(model):
                accelerator.backward(model(batch).square().mean())
                optimizer.step()
                optimizer.zero_grad()
    return step


@program("accelerate", limit=2, stacks="all")
def smaller_batches(torch):
    """Refused many times, and goes on with a smaller batch."""
    from accelerate.utils import find_executable_batch_size
    model = llama(4)
    optimizer = torch.optim.AdamW(model.parameters())
    @find_executable_batch_size(starting_batch_size=256)
    def train(batch):
        for _ in range(3):
            ids = torch.randint(0, 8000, (batch, 256), device=DEVICE)
            update(optimizer, model(input_ids=ids, labels=ids).loss)
    def step(size):
        train()
        if size > 2:
            raise StopIteration
    return step


@program("gpytorch")
@program("gpytorch", limit=2, dump="refusal")
def gaussian_process(torch):
    import gpytorch
    class Process(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))
    def step(size):
        x, likelihood = torch.rand(700 * size, 3, device=DEVICE), gpytorch.likelihoods.GaussianLikelihood().to(DEVICE)
        y = x.sum(1).sin()
        process = Process(x, y, likelihood).to(DEVICE).train()
        likelihood.train()
        optimizer = torch.optim.Adam(process.parameters(), 0.1)
        marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, process)
        for _ in range(4):
            update(optimizer, -marginal(process(x), y))
    return step


@program("botorch")
def acquisition(torch):
    from botorch.acquisition import qExpectedImprovement
    from botorch.models import SingleTaskGP
    def step(size):
        x = torch.rand(100 * size, 4, dtype=torch.float64, device=DEVICE)
        y = x.sin().sum(1, keepdim=True)
        gain = qExpectedImprovement(SingleTaskGP(x, y), best_f=y.max())
        points = torch.rand(32 * size, 3, 4, dtype=torch.float64, device=DEVICE, requires_grad=True)
        for _ in range(3):
            gain(points).sum().backward()
    return step


@program("e3nn")
def tensor_products(torch):
    from e3nn import o3
    hidden, harmonics = o3.Irreps("16x0e + 8x1o + 4x2e"), o3.Irreps("0e + 1o + 2e")
    product = o3.FullyConnectedTensorProduct(hidden, harmonics, hidden).to(DEVICE)
    optimizer = torch.optim.Adam(product.parameters())
    def step(size):
        edges = random.randrange(500, 3000) * size
        around = o3.spherical_harmonics(harmonics, torch.randn(edges, 3, device=DEVICE), normalize=True)
        nodes = torch.randn(edges, hidden.dim, device=DEVICE)
        update(optimizer, product(product(nodes, around), around).square().mean())
    return step


@program("torchaudio")
@program("torchaudio", limit=1, expandable=True)
def conformer(torch):
    import torchaudio
    features = torchaudio.transforms.MelSpectrogram(n_mels=80).to(DEVICE)
    model = torchaudio.models.Conformer(input_dim=80, num_heads=4, ffn_dim=256, num_layers=4, depthwise_conv_kernel_size=31).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    def step(size):
        sounds = features(torch.randn(4 * size, random.randrange(16000, 64000), device=DEVICE)).transpose(1, 2)
        lengths = torch.full((len(sounds),), sounds.shape[1], device=DEVICE)
        update(optimizer, model(sounds, lengths)[0].square().mean())
    return step


@program("torchdiffeq")
def neural_ode(torch):
    from torchdiffeq import odeint, odeint_adjoint
    class Field(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Linear(256, 64))
        def forward(self, t, y):
            return self.layers(y)
    field = Field().to(DEVICE)
    optimizer = torch.optim.Adam(field.parameters())
    def step(size):
        times = torch.linspace(0, 1, 20, device=DEVICE)
        for solve in (odeint, odeint_adjoint):
            update(optimizer, solve(field, torch.randn(2000 * size, 64, device=DEVICE), times, method="rk4").square().mean())
    return step


@program("torchmetrics", late=True)
@program("torchmetrics", limit=1)
def evaluation(torch):
    """Keeps all predictions, as the metric does."""
    from torchmetrics.classification import MulticlassAUROC
    metric = MulticlassAUROC(num_classes=50, validate_args=False).to(DEVICE)
    model = torch.nn.Linear(128, 50).to(DEVICE)
    @torch.no_grad()
    def step(size):
        for _ in range(10):
            metric.update(model(torch.randn(1000 * size, 128, device=DEVICE)), torch.randint(0, 50, (1000 * size,), device=DEVICE))
        metric.compute()
    return step


@program("torchvision", stacks="all")
@program("torchvision", expandable=True, late=True)
def streams(torch):
    """Batches from pinned memory by a stream of their own, and inference on three others."""
    import torchvision
    model = torchvision.models.swin_t(weights=None).to(DEVICE).eval()
    copies, others = torch.cuda.Stream(), [torch.cuda.Stream() for _ in range(3)]
    @torch.no_grad()
    def step(size):
        for turn, (batch,) in enumerate(loader(torch, torch.randn(12 * size, 3, 224, 224), batch=2 * size)):
            stream = others[turn % 3]
            with torch.cuda.stream(copies):
                batch = batch.to(DEVICE, non_blocking=True)
            stream.wait_stream(copies)
            batch.record_stream(stream)
            with torch.cuda.stream(stream):
                model(batch).softmax(1).argmax(1)
    return step


@program("timm")
@program("timm", expandable=True)
def graphs(torch):
    """A graph for each size, each with a private pool."""
    import timm
    model, kept = timm.create_model("resnet18", pretrained=False).to(DEVICE).eval(), []
    @torch.no_grad()
    def step(size):
        images, side = torch.randn(4 * size, 3, 160, 160, device=DEVICE), torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            model(images)
            model(images)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            output = model(images)
        graph.replay()
        kept.append((graph, images, output, model(images)))
    return step


@program("einops")
def compiled(torch):
    from einops.layers.torch import Rearrange
    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.project, self.output = torch.nn.Linear(256, 768), torch.nn.Linear(256, 256)
            self.split = Rearrange("b n (three h d) -> three b h n d", three=3, h=8)
            self.join = Rearrange("b h n d -> b n (h d)")
        def forward(self, x):
            return x + self.output(self.join(torch.nn.functional.scaled_dot_product_attention(*self.split(self.project(x)))))
    layers = torch.nn.Sequential(Rearrange("b c (h p) (w q) -> b (h w) (c p q)", p=16, q=16), torch.nn.Linear(768, 256),
                                 *[Attention() for _ in range(4)]).to(DEVICE)
    optimizer, model = torch.optim.AdamW(layers.parameters()), torch.compile(layers, backend="aot_eager")
    def step(size):
        update(optimizer, model(torch.randn(4 * size, 3, 256, 256, device=DEVICE)).square().mean())
    return step


@program("transformers")
@program("transformers", context="state")
def translation(torch):
    """T5, with checkpoints of layers, in two threads; each has its own stream."""
    from transformers import T5Config, T5ForConditionalGeneration
    config = T5Config(d_model=256, d_ff=1024, d_kv=32, num_heads=8, num_layers=4, vocab_size=8000, decoder_start_token_id=0)
    models = [T5ForConditionalGeneration(config).to(DEVICE).train() for _ in range(2)]
    def train(model, size):
        model.gradient_checkpointing_enable()
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(2):
                ids = torch.randint(0, 8000, (4 * size, 128), device=DEVICE)
                model(input_ids=ids, labels=ids[:, :64].contiguous()).loss.backward()
                model.zero_grad(set_to_none=True)
    def step(size):
        threads = [threading.Thread(target=train, args=(model, size + turn)) for turn, model in enumerate(models)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    return step


def simpler(torch, library):
    """A step of the library's simplest part, for where its other parts have changed."""
    import importlib
    importlib.import_module(library)
    def call(value):
        if library == "torchvision":
            from torchvision.models import resnet18
            return resnet18().to(DEVICE)(value[:, :49152].reshape(-1, 3, 128, 128))
        if library == "timm":
            from timm.layers import Mlp
            return Mlp(65536, 256, 64).to(DEVICE)(value)
        if library == "torchaudio":
            from torchaudio.functional import amplitude_to_DB
            return amplitude_to_DB(value.abs() + 1, 10.0, 1e-10, 0.0)
        if library in ("gpytorch", "botorch"):
            from gpytorch.kernels import RBFKernel
            kernel = RBFKernel().to(DEVICE)(value.reshape(-1, 64))
            return kernel.to_dense() if hasattr(kernel, "to_dense") else kernel.evaluate()
        if library == "e3nn":
            from e3nn import o3
            return o3.spherical_harmonics([0, 1, 2], value[:, :65535].reshape(-1, 3), normalize=True)
        if library == "torchdiffeq":
            from torchdiffeq import odeint
            return odeint(lambda t, y: y * t, value, torch.linspace(0, 1, 5, device=DEVICE), method="euler")
        if library == "einops":
            from einops import rearrange
            return rearrange(value, "b (h w) -> b w h", h=256).contiguous().softmax(1)
        if library == "torch_geometric":
            from torch_geometric.nn import GCNConv
            nodes = value.reshape(-1, 64)
            return GCNConv(64, 64).to(DEVICE)(nodes, torch.randint(0, len(nodes), (2, 4 * len(nodes)), device=DEVICE))
        from transformers import BertConfig, BertModel
        model = BertModel(BertConfig(hidden_size=256, num_hidden_layers=2, num_attention_heads=4)).to(DEVICE)
        return model(torch.randint(0, 30000, (len(value), 256), device=DEVICE)).last_hidden_state
    def step(size):
        value = torch.randn(4 * size, 65536, device=DEVICE, requires_grad=True)
        call(value).square().mean().backward()
    return step


def run(number, file):
    """Runs a program in this process, and writes its snapshot and FILE.json with PyTorch's figures and the count of the pickle."""
    function, options = PROGRAMS[number]
    import torch
    torch.manual_seed(number)
    random.seed(number)
    torch.cuda.init()
    total, result = torch.cuda.get_device_properties(0).total_memory, {"fallback": None, "torch": None}
    fraction = options.get("limit", 14) * GIB / total
    torch.cuda.set_per_process_memory_fraction(fraction, 0)
    refused, before, begun = [], {}, []

    def record():
        begun.append(True)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before.update(torch.cuda.memory_stats())
        torch.cuda.memory._record_memory_history("all", **{
            "stacks": "python", **{key: options[key] for key in ("stacks", "context", "max_entries") if key in options}})

    def dump():
        torch.cuda.memory._dump_snapshot(file)
        now = torch.cuda.memory_stats()
        since = {name: now.get(key, 0) - before.get(key, 0) for name, key in (
            ("allocations", "allocation.all.allocated"), ("frees", "active.all.freed"), ("refusals", "num_ooms"))}
        result["torch"] = {**{name: now[key] for name, key in (
            ("requestedPeak", "requested_bytes.all.peak"), ("allocatedPeak", "allocated_bytes.all.peak"),
            ("reservedPeak", "reserved_bytes.all.peak"))}, **since, "refused": list(refused)}

    def observe(device, byte_size, *_):
        refused.append(byte_size)
        if options.get("dump") == "refusal":
            dump()

    def alarm(*_):
        raise TimeoutError("time")

    def steps(step):
        for turn in itertools.count() if "limit" in options else range(8):
            step(int(1.5 ** turn) + 1 if "limit" in options else random.randrange(1, 5))
            if options.get("late") and not begun:
                record()

    def attempt(make):
        try:
            steps(make())
            return "done"
        except torch.OutOfMemoryError:
            return "refused"
        except StopIteration:
            return "done"
        except TimeoutError:
            return "time"

    torch._C._cuda_attach_out_of_memory_observer(observe)
    signal.signal(signal.SIGALRM, alarm)
    signal.alarm(25)
    if not options.get("late"):
        record()
    try:
        result["ended"] = attempt(lambda: function(torch))
    except Exception as reason:
        result["fallback"] = f"{type(reason).__name__}: {reason}"[:300]
        result["ended"] = attempt(lambda: simpler(torch, options["library"]))
    signal.alarm(0)
    if not begun:
        record()
    if result["torch"] is None:
        torch.cuda.synchronize()
        dump()
    version = getattr(sys.modules.get(options["library"]), "__version__", None)
    result.update(version=version, torchVersion=torch.__version__, limitBytes=int(fraction * total), counted=counted(file))
    pathlib.Path(file + ".json").write_text(json.dumps(result))
    os._exit(0)


def counted(file):
    """Counts a pickle's events, backwards from what is live at its end."""
    with open(file, "rb") as stream:
        snapshot = pickle.load(stream)
    events = next((trace for trace in snapshot["device_traces"] if trace), [])
    signs = {"alloc": 1, "free_completed": -1}
    held = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
    live = [block["requested_size"] for segment in snapshot["segments"] for block in segment["blocks"]
            if block["state"].startswith("active")]
    requested = sum(live) - sum(signs.get(event["action"], 0) * event["size"] for event in events)
    reserved = (sum(segment["total_size"] for segment in snapshot["segments"])
                - sum(held.get(event["action"], 0) * event["size"] for event in events))
    older = len(live) - sum(signs.get(event["action"], 0) for event in events)
    peak = asked = requested
    reserved_peak, refused = reserved, []
    for event in events:
        if event["action"] == "oom":
            refused.append(event["size"])
            asked = max(asked, requested + event["size"])
        requested += signs.get(event["action"], 0) * event["size"]
        reserved += held.get(event["action"], 0) * event["size"]
        peak, reserved_peak = max(peak, requested), max(reserved_peak, reserved)
    actions = [event["action"] for event in events]
    return {"events": len(events), "allocations": actions.count("alloc"), "frees": actions.count("free_completed"), "older": older,
            "requestedPeak": peak, "askedPeak": max(asked, peak), "reservedPeak": reserved_peak, "refused": refused}


def segment(byte_size):
    """The bytes that PyTorch asks the driver for, for a block of this size."""
    return 2 * MIB if byte_size <= MIB else 20 * MIB if byte_size < 10 * MIB else -(-byte_size // (2 * MIB)) * 2 * MIB


def fit(distribution, file, *options):
    begun = time.monotonic()
    process = subprocess.run([f"{distribution}/cistern", "fit", file, "--format", "json", *options], capture_output=True, text=True)
    try:
        said = json.loads(process.stdout)[0]
    except (ValueError, IndexError):
        said = {"error": (process.stderr or process.stdout)[-300:]}
    return said, process.returncode, round(time.monotonic() - begun, 1)


def compared(distribution, file, row):
    """Adds what `cistern fit` says, and what of it is equal to the other counts."""
    said, code, seconds = fit(distribution, file)
    row.update(fitSeconds=seconds, exitCode=code, bytes=os.path.getsize(file), cistern=said)
    if "error" in said:
        return
    said.pop("peakHolders")
    count, by_torch = row["counted"], row["torch"]
    sizes = [each["byteSize"] for each in said["refused"]]
    first = said["allocators"][0]
    lost = count["events"] >= row.get("max_entries", sys.maxsize)  # PyTorch's own figures are of all events.
    equal = {
        "requestedPeak": said["servedPeakBytes"] == count["requestedPeak"]
            and (lost or count["requestedPeak"] == by_torch["requestedPeak"]),
        "askedPeak": said["requestedPeakBytes"] == count["askedPeak"],
        "reservedPeak": said["recordedReservedPeakBytes"] == count["reservedPeak"]
            and (lost or count["reservedPeak"] == by_torch["reservedPeak"]),
        "refused": sizes == count["refused"] and (lost or [segment(each) for each in sizes] == by_torch["refused"]),
        "events": said["operations"] == count["older"] + count["allocations"] + count["frees"] + 2 * len(sizes)
            and (lost or (count["allocations"], count["frees"]) == (by_torch["allocations"], by_torch["frees"])),
        "older": said["olderBlocks"] == count["older"],
        "verdict": code == (3 if sizes and not first["fits"] else 0)
            and not (sizes and first["fits"] and said["capacityBytes"] < count["askedPeak"]),
    }
    row.update(lostEvents=lost, equal=equal, allEqual=all(equal.values()))
    if sizes:  # What the model of the same allocator says of the room that PyTorch had.
        model = "pytorch-expandable" if row.get("expandable") else "pytorch-native"
        there, _, _ = fit(distribution, file, "--capacity", str(row["limitBytes"]), "--allocator", model, "--allocator", "caching")
        row["atTheLimit"] = there.get("allocators", there)


def measured(distribution, folder, number, end):
    function, options = PROGRAMS[number]
    name = "-".join([function.__name__, *(key for key in ("limit", "expandable", "late", "max_entries") if key in options),
                     *(options[key] for key in ("stacks", "context") if key in options)])
    row = {"program": name, **options}
    file = str(folder / (name + ".pickle"))
    begun = time.monotonic()
    try:
        if begun > end:
            raise TimeoutError("not started, no time left")
        conf = "expandable_segments:True" if options.get("expandable") else ""
        environment = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": conf, "PYTORCH_ALLOC_CONF": conf, "OMP_NUM_THREADS": "2",
                       "HF_HUB_OFFLINE": "1", "TORCH_SYMBOLIZE_MODE": "dladdr", "PYTHONWARNINGS": "ignore"}
        with open(folder / (name + ".log"), "w") as log:
            subprocess.run([sys.executable, __file__, str(number), file], env=environment, stdout=log, stderr=log, timeout=75,
                           check=True, stdin=subprocess.DEVNULL)
        row.update(json.loads(pathlib.Path(file + ".json").read_text()), seconds=round(time.monotonic() - begun, 1))
        compared(distribution, file, row)
    except Exception as reason:
        log = folder / (name + ".log")
        row["leftOut"] = f"{type(reason).__name__}: {reason}"[:300] + (": " + log.read_text()[-500:] if log.exists() else "")
    print(json.dumps(row), flush=True)
    print(name, row.get("leftOut", row.get("equal")), file=sys.stderr, flush=True)
    return row


def main(distribution, folder, seconds=150):
    end, folder = time.monotonic() + float(seconds), pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    plain = sorted(range(len(PROGRAMS)), key=lambda number: ("limit" not in PROGRAMS[number][1], number))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda number: measured(distribution, folder, number, end), plain))
    print(f"{len(rows)} snapshots, {sum('leftOut' not in row for row in rows)} made, {sum(row.get('allEqual', False) for row in rows)} "
          f"with all figures equal, {sum(bool((row.get('counted') or {}).get('refused')) for row in rows)} "
          f"with a refusal, of {len({row['library'] for row in rows if 'leftOut' not in row})} libraries", file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1].isdigit():
        run(int(sys.argv[1]), sys.argv[2])
    else:
        main(*sys.argv[1:])
