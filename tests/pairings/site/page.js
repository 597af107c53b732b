// Chromium as a client: /?SERVICE&LENGTH&NAME&PREFIX writes the transcript into the page. The page's load ends after
// that, since it waits for the report of this NAME.
'use strict';

async function* parts(path) {
  const reader = (await fetch(path)).body.getReader();
  for (let part; !(part = await reader.read()).done; ) yield part.value;
}

async function* data(path) {
  const source = new EventSource(path);
  const [come, waiting] = [[], []];
  source.onmessage = (event) => (waiting.length ? waiting.shift()(event.data) : come.push(event.data));
  try {
    for (;;) yield come.length ? come.shift() : await new Promise((resolve) => waiting.push(resolve));
  } finally {
    source.close();
  }
}

const [service, length, name, base] = location.search.slice(1).split('&');

const page = {
  async ask(method, path, { fields, body, length } = {}) {
    // The browser streams a Blob, and knows its length.
    if (length !== undefined) body = new Blob([...body]);
    const response = await fetch(base + path, { method, headers: fields, body, cache: 'no-store' });
    return {
      status: response.status,
      field: (name) => response.headers.get(name),
      bytes: async () => new Uint8Array(await response.arrayBuffer()),
    };
  },
  parts,
  data,
  socket: (path, protocol) => new WebSocket(location.origin.replace('http', 'ws') + path, protocol),
  sha256() {
    const blocks = [];
    return {
      update: (bytes) => blocks.push(bytes),
      async hex() {
        const sum = await crypto.subtle.digest('SHA-256', await new Blob(blocks).arrayBuffer());
        return [...new Uint8Array(sum)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
      },
    };
  },
};

// The browser's own requests for what the page is made of.
cases.page = async function* () {
  const picture = document.getElementById('picture');
  await picture.decode();
  yield `picture ${picture.naturalWidth} x ${picture.naturalHeight}`;
  yield `colour ${getComputedStyle(document.getElementById('transcript')).color}`;
};

new Image().src = `/report/${name}`;
transcript(page, service, Number(length))
  .catch((error) => `${error.stack}\n`)
  .then((lines) => {
    document.getElementById('transcript').textContent = lines;
    return fetch(`/report/${name}`, { method: 'POST' });
  });
