// All requests of the page to the service. Ids from the service are text and stay text: they never become markup.

import { computed, signal } from "./vendor/vendor.js";

const HOME = location.pathname.replace(/\/$/, ""); // with several shops, each has its own path
const STORED = `albatross key${HOME}`; // kept for this tab only

export const key = signal(sessionStorage.getItem(STORED));
export const access = signal(null); // the scopes of the key; null until it is known
export const refusal = signal(null); // why the last key was refused
export const reachable = signal(true);
export const returns = signal(0); // how often the service became reachable again
export const scale = signal([1, 5]);

const AGAIN = 5; // how often a request is sent again while the service is overloaded

export class Problem extends Error {
  constructor(status, code, detail, pause = 1) {
    super(detail);
    this.status = status;
    this.code = code;
    this.pause = pause; // seconds to wait before the request is sent again
  }
}

export const may = (scope) => access.value !== null && access.value.scopes.includes(scope);
export const locked = computed(() => access.value !== null && access.value.scopes.length === 0);

function headers() {
  return key.value ? { authorization: `Bearer ${key.value}` } : {};
}

async function problemOf(response) {
  try {
    const told = await response.json();
    return new Problem(response.status, told.code, told.detail, Number(response.headers.get("retry-after") ?? 1));
  } catch {
    return new Problem(response.status, "refused", `the service answered with status ${response.status}`);
  }
}

/** Send a request. An overloaded service (429) has changed nothing, so the same request is sent again after a pause. */
async function send(method, path, body, abort) {
  for (let left = AGAIN; ; left -= 1) {
    try {
      return await sendOnce(method, path, body, abort);
    } catch (problem) {
      if (problem.status !== 429 || left === 0) throw problem;
      await new Promise((resolve) => setTimeout(resolve, 1000 * problem.pause));
      abort?.throwIfAborted();
    }
  }
}

async function sendOnce(method, path, body, abort) {
  let response;
  try {
    response = await fetch(HOME + path, {
      method,
      headers: headers(),
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: abort,
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    away();
    throw new Problem(0, "unreachable", "The service does not answer. The page retries automatically.");
  }
  back();
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (problem.status === 401) lockOut(problem.message);
  throw problem;
}

export const get = async (path, abort) => (await send("GET", path, undefined, abort)).json();
export const post = async (path, body, abort) => (await send("POST", path, body, abort)).json();
export const text = async (path, abort) => (await send("GET", path, undefined, abort)).text();

let knocking = 0;

function away() {
  reachable.value = false;
  clearTimeout(knocking);
  knocking = setTimeout(() => get("/readyz").catch(() => {}), 1000);
}

function back() {
  clearTimeout(knocking);
  if (!reachable.value) returns.value += 1;
  reachable.value = true;
}

function lockOut(reason) {
  sessionStorage.removeItem(STORED);
  if (key.value !== null) refusal.value = reason;
  key.value = null;
  access.value = { key_needed: true, scopes: [], key: null, expires: null };
}

/** Find out what is allowed, with the stored key if there is one. */
export async function enter() {
  const told = await get("/v1/access");
  access.value = told;
  if (told.scopes.length > 0) await readScale();
}

/** Try a key, and store it for this tab if it is valid. */
export async function useKey(given) {
  refusal.value = null;
  key.value = given;
  try {
    await enter();
    sessionStorage.setItem(STORED, given);
  } catch (error) {
    if (error.status !== 401) key.value = null;
    refusal.value = error.message;
  }
}

export function dropKey() {
  sessionStorage.removeItem(STORED);
  key.value = null;
  refusal.value = null;
  access.value = { key_needed: true, scopes: [], key: null, expires: null };
}

async function readScale() {
  const schema = await get("/schema");
  const rating = schema.components.schemas.Feedback.properties.rating;
  scale.value = [rating.minimum, rating.maximum];
}

/** A new unique id, so that a rating sent twice counts once. */
export const fresh = () => crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");

/** Server-sent events by fetch, because the key is sent in a header. Calls `tell(kind, data)`; returns when the stream ends. */
async function follow(path, tell, abort) {
  const response = await send("GET", path, undefined, abort);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = {};
      for (const line of block.split("\n")) {
        const at = line.indexOf(": ");
        if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2);
      }
      if (fields.data !== undefined) tell(fields.event, JSON.parse(fields.data));
    }
  }
}

/** Follow a stream while the page is visible: it pauses while hidden and reconnects after a restart of the service. */
export function listen(path, tell, onPhase) {
  let abort = null;
  let ended = false;
  let pause = 500;
  let timer = 0;
  async function run() {
    if (ended || document.hidden || abort !== null) return;
    abort = new AbortController();
    const mine = abort;
    onPhase("connecting");
    try {
      await follow(path, (kind, data) => {
        pause = 500;
        onPhase("live");
        tell(kind, data);
      }, mine.signal);
    } catch (error) {
      if (error.status === 401 || error.status === 403) ended = true;
    }
    if (abort === mine) abort = null;
    if (ended || document.hidden) return;
    onPhase("waiting");
    timer = setTimeout(run, pause);
    pause = Math.min(2 * pause, 5000);
  }
  function look() {
    clearTimeout(timer);
    if (document.hidden) {
      abort?.abort();
      abort = null;
      onPhase("paused");
    } else run();
  }
  document.addEventListener("visibilitychange", look);
  run();
  return () => {
    ended = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
    abort?.abort();
  };
}
