# A trace of `steps` steps of 10 ms on one thread: data 1, aten::mm 6 times `slow`, optimizer 2, nothing 1; each 2 % uneven by `seed`.
# `batch` is the size of the product's input, `kernel` the name of the kernel behind it, `start` the second of the day it began.
function uneven() { # a simple generator, the same everywhere
	seed = (seed * 16807) % 2147483647
	return 0.98 + 0.04 * seed / 2147483647
}
function event(cat, name, tid, ts, dur, args) {
	printf ",\n{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d, \"ts\": %d, \"dur\": %d, \"args\": {%s}}",
		cat, name, cat == "kernel" ? 0 : 1, tid, ts, dur, args
}
BEGIN {
	slow = slow ? slow : 1; batch = batch ? batch : 32; kernel = kernel ? kernel : "ampere_sgemm_128x64_tn"
	seed = seed * 7919 + 1
	printf "{\"schemaVersion\": 1, \"baseTimeNanoseconds\": 17000%05d000000000, \"traceEvents\": [\n", start
	printf "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 1, \"tid\": 0, \"args\": {\"name\": \"python\"}}"
	at = 0
	for (i = 0; i < steps; i++) {
		begin = at
		data = int(1000 * uneven()); mm = int(6000 * slow * uneven() * (i < warm ? 3 : 1)); optimizer = int(2000 * uneven())
		event("cpu_op", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, at, data, "")
		at += data
		event("cpu_op", "aten::mm", 1, at, mm, "\"Input Dims\": [[" batch ", 64], [64, 64]]")
		event("cuda_runtime", "cudaLaunchKernel", 1, at + 10, 20, "\"correlation\": " i + 1)
		event("kernel", kernel, 7, at + 40, mm - 100, "\"correlation\": " i + 1 ", \"stream\": 7, \"device\": 0")
		at += mm
		event("cpu_op", "Optimizer.step#SGD.step", 1, at, optimizer, "")
		at += optimizer + 1000
		event("user_annotation", "ProfilerStep#" i, 1, begin, at - begin, "")
	}
	printf "\n]}\n"
}
