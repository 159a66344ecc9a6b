// Search in a site that is opened as files. Browsers start no worker from a file, so a hidden frame runs the worker's script.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html><title>search</title>";
      frame.onload = () => {
        const inside = frame.contentWindow;
        const load = (source) =>
          new Promise((done, failed) => {
            const script = inside.document.createElement("script");
            Object.assign(script, { src: source, onload: done, onerror: failed });
            inside.document.body.append(script);
          });
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        inside.importScripts = (...sources) => Promise.all(sources.map(load));
        load(url).then(() => {
          this.inside = inside;
          this.waiting.forEach((data) => this.postMessage(data));
        });
      };
      document.body.append(frame);
    }

    postMessage(data) {
      if (this.inside) this.inside.dispatchEvent(new MessageEvent("message", { data }));
      else this.waiting.push(data);
    }
  };
}
