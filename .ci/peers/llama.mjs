// Decodes one sequence with llama.cpp. Arguments: the folder of node_modules, the GGUF file, and the job as JSON with prompt and new.
// Answers one line of JSON for each line "threads" of the standard input.
import {readFileSync} from "node:fs";
import {createInterface} from "node:readline";
import {pathToFileURL} from "node:url";

const [modules, file, job] = process.argv.slice(2);
const {prompt, new: count, vocab} = JSON.parse(job);
const {getLlama} = await import(pathToFileURL(modules + "/node-llama-cpp/dist/index.js"));
const llama = await getLlama({gpu: false, build: "never", skipDownload: true, logLevel: "error", progressLogs: false});
const model = await llama.loadModel({modelPath: file});
const version = JSON.parse(readFileSync(modules + "/node-llama-cpp/llama/binariesGithubRelease.json")).release;
console.log(JSON.stringify({version}));

async function decode(threads) {
    llama.maxThreads = threads;
    const context = await model.createContext({sequences: 1, contextSize: 512, threads: {ideal: threads, min: threads}});
    const sequence = context.getSequence();
    const ids = Array.from({length: prompt}, (_, i) => (i * 7919 + 13) % vocab);
    await sequence.evaluateWithoutGeneratingNewTokens(ids.slice(0, -1));
    const start = performance.now();
    let made = 0, first = start;
    for await (const _ of sequence.evaluate(ids.slice(-1), {temperature: 0, yieldEogToken: true})) {
        if (made++ === 0)
            first = performance.now();
        if (made === count)
            break;
    }
    const end = performance.now();
    await context.dispose();
    return {seconds: (end - start) / 1000, rate: (made - 1) / (end - first) * 1000, peak_rss: 1024 * Number(readFileSync("/proc/self/status", "utf8").match(/VmHWM:\s*(\d+)/)[1])};
}

for await (const line of createInterface({input: process.stdin}))
    console.log(JSON.stringify(await decode(Number(line))));
process.exit(0);
