/** Types of albatross.js, for the service that this was fetched from. */

export interface ClientOptions {
  /** The key that `albatross keys create` printed. In a page everybody can read it: give it at most the scopes recommend and feedback. */
  key?: string;
  /** Seconds for retries if there is no answer or a temporary refusal. 10 if not given. */
  patience?: number;
  /** The function that sends requests; that of the browser or of Node if not given. */
  fetch?: typeof fetch;
}

/** Sends requests to a service. Without an answer, it retries with the same ids, so nothing counts twice. */
export class Client {
  constructor(url: string, options?: ClientOptions);
  readonly url: string;
  readonly patience: number;
  /** Items to show a user: one, or `n` of them, best first. With null, an unknown visitor: the answer contains a new id. */
  recommend(user: string | null, options?: Omit<Recommend, "user">): Promise<Decision>;
  /** Rate a decision, given as such or by its id; with several items, say which. */
  rate(decision: Decision | string, rating: number, options?: { item?: string; user?: string; event_id?: string }): Promise<Accepted>;
  /** A rating without a decision: the user found the item without a recommendation. */
  rateItem(user: string, item: string, rating: number, options?: { event_id?: string }): Promise<Accepted>;
  /** A named event for an item of a decision, for example click. A later event replaces the earlier one: click, then purchase. */
  report(decision: Decision | string, event: string, options?: { item?: string; user?: string; event_id?: string }): Promise<Accepted>;
  /** A named event for an item that no decision showed. */
  reportItem(user: string, item: string, event: string, options?: { event_id?: string }): Promise<Accepted>;
  /** Set the named events and their rewards from now on. */
  setRewards(events: Record<string, number>): Promise<RewardsAccepted>;
  /** Add or change an item; it may be shown. Fields that are not given keep their values. */
  upsertItem(item: string, description?: Omit<UpsertItem, "item">): Promise<ItemAccepted>;
  /** The items whose vectors have the most similar direction. */
  similarItems(item: string, n?: number): Promise<SimilarList>;
  /** Stop showing an item. What was learned about it is kept. */
  retireItem(item: string): Promise<ItemAccepted>;
  /** Show a retired item again. */
  restoreItem(item: string): Promise<ItemAccepted>;
  /** The belief about a user, and the items with the best scores. */
  user(user: string, n?: number): Promise<UserView>;
  /** A visitor is now known to be this user: the visitor's past and future events belong to the user. */
  join(visitor: string, user: string): Promise<UsersJoined>;
  /** Erase a user from the log, and rebuild the model without them. */
  forgetUser(user: string): Promise<Forgotten>;
  /** The state id, the head of the log, and the settings of the folder. */
  version(): Promise<Version>;
  /** Mean rating, calibration and optimism so far. */
  series(): Promise<Series>;
  /** Write a snapshot of the model now. */
  snapshot(): Promise<SnapshotTaken>;
  /** Copy the whole folder, while it is served, to a new one below its `backups`. */
  backup(): Promise<BackupTaken>;
  /** Any request, by its path. */
  ask<P extends keyof Routes>(path: P, request?: Routes[P]["request"]): Promise<Routes[P]["answer"]>;
}

/** The request was not accepted, and nothing was changed. */
export class Refused extends Error {
  constructor(detail: string, status: number, code: string);
  status: number;
  code: string;
}

/** The service did not answer, in spite of retries. */
export class Unreachable extends Error {
  constructor(message: string, options?: { cause?: unknown });
}

export const BY_CODE: Record<string, typeof Refused>;
