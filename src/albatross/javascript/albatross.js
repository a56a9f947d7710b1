/**
 * The service from a browser or from Node: the methods of the Python client, without dependencies.
 *
 *     import { Client } from "./albatross.js";
 *     const shop = new Client("http://localhost:8000");
 *     const decision = await shop.recommend("ann", { candidates: ["tea", "coffee", "mate"] });
 *     await shop.rate(decision, 4);
 *
 * Fields of requests and answers have the names of the HTTP interface. A request without an answer is sent again with the same ids, so that
 * nothing counts twice.
 */

/** Temporary statuses: in flight, overloaded, replaying. */
const PASSING = [409, 429, 503];
/** Seconds. */
const FIRST_PAUSE = 0.02;
const LONGEST_PAUSE = 2;

/** The request was not accepted, and nothing was changed. */
export class Refused extends Error {
  /**
   * @param {string} detail
   * @param {number} status
   * @param {string} code
   */
  constructor(detail, status, code) {
    super(detail);
    this.name = new.target.name;
    this.status = status;
    this.code = code;
  }
}

export class BadValue extends Refused {}
export class EventReused extends Refused {}
export class AlreadyRated extends Refused {}
export class NoEligibleCandidate extends Refused {}
export class UnknownItem extends Refused {}
export class NotJson extends Refused {}
export class Unauthorized extends Refused {}
export class Denied extends Refused {}
export class NotFound extends Refused {}
export class UnknownDecision extends Refused {}
export class UnknownUser extends Refused {}
export class MethodNotAllowed extends Refused {}
export class TooSlow extends Refused {}
export class EventInFlight extends Refused {}
export class TooLarge extends Refused {}
export class Overloaded extends Refused {}
export class NotReady extends Refused {}
export class StorageFailed extends Refused {}
export class DiskFull extends Refused {}
export class NotWritten extends Refused {}
export class NoMemory extends Refused {}

/** The service did not answer, in spite of retries. */
export class Unreachable extends Error {
  /**
   * @param {string} message
   * @param {{ cause?: unknown }} [options]
   */
  constructor(message, options) {
    super(message, options);
    this.name = "Unreachable";
  }
}

/** The error class for the code of a problem document. @type {Record<string, typeof Refused>} */
export const BY_CODE = {
  refused: Refused,
  "bad-value": BadValue,
  "event-reused": EventReused,
  "already-rated": AlreadyRated,
  "no-eligible-candidate": NoEligibleCandidate,
  "unknown-item": UnknownItem,
  "not-json": NotJson,
  "no-valid-key": Unauthorized,
  forbidden: Denied,
  "not-found": NotFound,
  "unknown-decision": UnknownDecision,
  "unknown-user": UnknownUser,
  "method-not-allowed": MethodNotAllowed,
  "too-slow": TooSlow,
  "event-in-flight": EventInFlight,
  "too-large": TooLarge,
  overloaded: Overloaded,
  "not-ready": NotReady,
  "storage-failed": StorageFailed,
  "disk-full": DiskFull,
  "not-written": NotWritten,
  "no-memory": NoMemory,
};

export class Client {
  /**
   * @param {string} url
   * @param {import("./albatross.d.ts").ClientOptions} [options]
   */
  constructor(url, { key, patience = 10, fetch: send = globalThis.fetch } = {}) {
    const parts = URL.canParse?.(url) === false ? null : new URL(url);
    if (!parts || !/^https?:$/.test(parts.protocol) || parts.search || parts.hash || parts.username) {
      throw new TypeError(`url is ${JSON.stringify(url)}; accepted: http://host:port or https://host:port`);
    }
    this.url = parts.href.replace(/\/+$/, "");
    this.patience = patience;
    /** @type {Record<string, string>} */
    this._headers = key === undefined ? {} : { Authorization: `Bearer ${key}` };
    this._fetch = send.bind(globalThis);
    Object.defineProperty(this, "_headers", { enumerable: false }); // so that a printed client does not show the key
  }

  /** @type {import("./albatross.d.ts").Client["recommend"]} */
  recommend(user, options = {}) {
    return this.ask("/v1/recommend", { ...options, request_id: options.request_id ?? fresh(), user });
  }

  /** @type {import("./albatross.d.ts").Client["rate"]} */
  rate(decision, rating, options = {}) {
    return this.ask("/v1/feedback", { ...options, event_id: options.event_id ?? fresh(), decision_id: idOf(decision), rating });
  }

  /** @type {import("./albatross.d.ts").Client["rateItem"]} */
  rateItem(user, item, rating, options = {}) {
    return this.ask("/v1/feedback", { ...options, event_id: options.event_id ?? fresh(), user, item, rating });
  }

  /** @type {import("./albatross.d.ts").Client["report"]} */
  report(decision, event, options = {}) {
    return this.ask("/v1/feedback", { ...options, event_id: options.event_id ?? fresh(), decision_id: idOf(decision), event });
  }

  /** @type {import("./albatross.d.ts").Client["reportItem"]} */
  reportItem(user, item, event, options = {}) {
    return this.ask("/v1/feedback", { ...options, event_id: options.event_id ?? fresh(), user, item, event });
  }

  /** @type {import("./albatross.d.ts").Client["setRewards"]} */
  setRewards(events) {
    return this.ask("/v1/rewards", { events });
  }

  /** @type {import("./albatross.d.ts").Client["upsertItem"]} */
  upsertItem(item, description = {}) {
    return this.ask("/v1/items/upsert", { ...description, item });
  }

  /** @type {import("./albatross.d.ts").Client["similarItems"]} */
  similarItems(item, n = 10) {
    return this.ask("/v1/items/similar", { item, n });
  }

  /** @type {import("./albatross.d.ts").Client["retireItem"]} */
  retireItem(item) {
    return this.ask("/v1/items/retire", { item });
  }

  /** @type {import("./albatross.d.ts").Client["restoreItem"]} */
  restoreItem(item) {
    return this.ask("/v1/items/restore", { item });
  }

  /** @type {import("./albatross.d.ts").Client["user"]} */
  user(user, n = 10) {
    return this.ask("/v1/users/get", { user, n });
  }

  /** @type {import("./albatross.d.ts").Client["join"]} */
  join(visitor, user) {
    return this.ask("/v1/users/join", { visitor, user });
  }

  /** @type {import("./albatross.d.ts").Client["forgetUser"]} */
  forgetUser(user) {
    return this.ask("/v1/users/forget", { user });
  }

  /** @type {import("./albatross.d.ts").Client["version"]} */
  version() {
    return this.ask("/v1/version");
  }

  /** @type {import("./albatross.d.ts").Client["series"]} */
  series() {
    return this.ask("/v1/series");
  }

  /** @type {import("./albatross.d.ts").Client["snapshot"]} */
  snapshot() {
    return this.ask("/v1/snapshot", {});
  }

  /** @type {import("./albatross.d.ts").Client["backup"]} */
  backup() {
    return this.ask("/v1/backup", {});
  }

  /**
   * Send a request, with retries until patience ends. The body, and so every id, is the same each time.
   *
   * @template {keyof import("./albatross.d.ts").Routes} P
   * @param {P} path
   * @param {import("./albatross.d.ts").Routes[P]["request"]} [request]
   * @returns {Promise<import("./albatross.d.ts").Routes[P]["answer"]>}
   */
  async ask(path, request) {
    const body = request === undefined ? undefined : write(request);
    const deadline = now() + this.patience;
    let pause = FIRST_PAUSE;
    for (;;) {
      let failure;
      try {
        const { status, advice, content } = await this._once(path, body);
        if (status === 200) return JSON.parse(content);
        failure = refusal(status, content);
        if (!PASSING.includes(status)) throw failure;
        pause = Math.max(pause, advice);
      } catch (error) {
        if (error === failure) throw error;
        failure = new Unreachable(`${this.url} does not answer: ${error instanceof Error ? error.message : error}`, { cause: error });
      }
      if (now() + pause > deadline) throw failure;
      await new Promise((resolve) => setTimeout(resolve, 1000 * pause));
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
  }

  /**
   * Status, the seconds to wait that the service advises, and body.
   *
   * @param {string} path
   * @param {string | undefined} body
   */
  async _once(path, body) {
    const response = await this._fetch(this.url + path, {
      method: body === undefined ? "GET" : "POST",
      body,
      headers: body === undefined ? this._headers : { "Content-Type": "application/json", ...this._headers },
      keepalive: path === "/v1/feedback", // so that a click that leaves the page is sent
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
      signal: AbortSignal.timeout(1000 * Math.max(this.patience, 1)),
    });
    const content = await response.text();
    const advice = response.headers.get("Retry-After") ?? "";
    return { status: response.status, advice: /^\d+$/.test(advice) ? Number(advice) : 0, content };
  }
}

/** A new unique id. */
function fresh() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {import("./albatross.d.ts").Decision | string} decision */
function idOf(decision) {
  return typeof decision === "string" ? decision : decision.decision_id;
}

/**
 * JSON, with an error for what JSON would change silently: NaN would become null.
 *
 * @param {unknown} request
 */
function write(request) {
  return JSON.stringify(request, (name, value) => {
    if (typeof value === "number" && !Number.isFinite(value)) {
      throw new BadValue(`${name} is ${value}; accepted: a finite number`, 422, "bad-value");
    }
    return value;
  });
}

/**
 * The error for a problem document, or for another answer instead of one.
 *
 * @param {number} status
 * @param {string} content
 */
function refusal(status, content) {
  let code = "refused";
  let detail = `status ${status}, without a problem document`;
  try {
    const problem = JSON.parse(content);
    if (typeof problem?.code === "string" && typeof problem.detail === "string") ({ code, detail } = problem);
  } catch {} // not JSON: a proxy has answered
  const kind = Object.hasOwn(BY_CODE, code) ? BY_CODE[code] : Refused;
  return new kind(detail, status, code);
}

function now() {
  return performance.now() / 1000;
}
