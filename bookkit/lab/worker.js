// Python in a worker, made of a Blob, so that it also starts from a file. What Pyodide
// would fetch is in the first message; there is no other request. Browsers start no worker
// that is a module from a file, so Pyodide's two modules are made into functions.
let work, waiting = Promise.resolve();

self.onmessage = ({ data }) => {
  waiting = waiting.then(() => (data.loader ? begin(data) : judge(data)));
};

async function begin({ loader, asm, wasm, stdlib, lock, files }) {
  try {
    self.fetch = async (url) => {
      if (String(url).endsWith("python_stdlib.zip")) return new Response(stdlib);
      if (String(url).endsWith("pyodide.asm.wasm")) return new Response();  // see below
      throw new Error("a page has no network");
    };
    self.XMLHttpRequest = self.WebSocket = undefined;
    self.importScripts = () => { throw new Error("a page has no network"); };
    WebAssembly.instantiateStreaming = async (_, imports) => ({
      module: wasm, instance: await WebAssembly.instantiate(wasm, imports),
    });
    const { loadPyodide } = load(loader), factory = load(asm);
    const python = await loadPyodide({
      createPyodideModule: factory.default, lockFileContents: lock,
      indexURL: "https://beside.invalid/", packageBaseUrl: "https://beside.invalid/",
      stdLibURL: "https://beside.invalid/python_stdlib.zip", stdin: () => null,
      env: { HOME: "/home/reader" },
    });
    python.unpackArchive(files, "zip", { extractDir: "/home/book" });
    work = python.runPython(
      "import sys; sys.path.insert(0, '/home/book')\n"
      + "from bookkit.lab import desk; desk.stand_in(); desk.run_and_judge");
    postMessage({ ready: true });
  } catch (error) {
    postMessage({ broken: String(error) });
  }
}

// What a module of plain text exports.
function load(text) {
  const body = text.replace(/import\.meta\.url/g, '"https://beside.invalid/"')
    .replace(/export\s+default\s+(\w+);?/, "return { default: $1 };")
    .replace(/export\s*\{([^}]*)\};?/, (_, names) => `return {${names.replace(
      /(\w+) as (\w+)/g, "$2: $1")}};`);
  return new Function(body)();
}

function judge({ id, chapter, number, code }) {
  postMessage({ id, begun: true });
  try {
    postMessage({ id, ...JSON.parse(work(chapter, number, code)) });
  } catch (error) {
    postMessage({ id, ended: String(error).split("\n")[0] });
  }
}
