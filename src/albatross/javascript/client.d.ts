/** Types of albatross.js, for the service that this was fetched from. */

export interface ClientOptions {
  /** As `albatross keys create` prints it. In a page, everybody can read it: give it the scopes recommend and feedback at most. */
  key?: string;
  /** Seconds in which to ask again, where there is no answer, or one that says: later. 10 if not given. */
  patience?: number;
  /** What sends requests; that of the browser or of Node if not given. */
  fetch?: typeof fetch;
}

/** Asks a service. What gets no answer is sent again, with the same ids, so nothing counts twice. */
export class Client {
  constructor(url: string, options?: ClientOptions);
  readonly url: string;
  readonly patience: number;
  /** What to show this user: one item, or `n` of them, best first. With null, a visitor whom nobody knows: the answer has their id. */
  recommend(user: string | null, options?: Omit<Recommend, "user">): Promise<Decision>;
  /** The rating of a decision, or of its id; of several items, say which. */
  rate(decision: Decision | string, rating: number, options?: { item?: string; user?: string; event_id?: string }): Promise<Accepted>;
  /** A rating without a decision: the user chose the item by themselves. */
  rateItem(user: string, item: string, rating: number, options?: { event_id?: string }): Promise<Accepted>;
  /** What was done with an item of a decision, as click. A later event replaces the earlier one: click, then purchase. */
  report(decision: Decision | string, event: string, options?: { item?: string; user?: string; event_id?: string }): Promise<Accepted>;
  /** What was done with an item that no decision showed. */
  reportItem(user: string, item: string, event: string, options?: { event_id?: string }): Promise<Accepted>;
  /** From now on, these are the names of events, and what they are worth. */
  setRewards(events: Record<string, number>): Promise<RewardsAccepted>;
  /** There is such an item, and it may be shown. What is not said stays as it was. */
  upsertItem(item: string, description?: Omit<UpsertItem, "item">): Promise<ItemAccepted>;
  /** The items whose vectors point most in the direction of this one's. */
  similarItems(item: string, n?: number): Promise<SimilarList>;
  /** Never show it again; what was learned of it stays. */
  retireItem(item: string): Promise<ItemAccepted>;
  /** It may be shown again. */
  restoreItem(item: string): Promise<ItemAccepted>;
  /** What is believed of a user, and the items with the best scores. */
  user(user: string, n?: number): Promise<UserView>;
  /** A visitor turned out to be this user: all they said, and will say, is the user's. */
  join(visitor: string, user: string): Promise<UsersJoined>;
  /** Erase a user from the log, and rebuild the model as if they had never come. */
  forgetUser(user: string): Promise<Forgotten>;
  /** The state id, the head of the log, and what the folder began with. */
  version(): Promise<Version>;
  /** How it went so far: mean rating, calibration and optimism. */
  series(): Promise<Series>;
  /** Write the model beside the log now. */
  snapshot(): Promise<SnapshotTaken>;
  /** Copy the whole folder to a new one below its `backups`, while it serves. */
  backup(): Promise<BackupTaken>;
  /** Any request, by its path. */
  ask<P extends keyof Routes>(path: P, request?: Routes[P]["request"]): Promise<Routes[P]["answer"]>;
}

/** A request was not accepted, and nothing was changed. */
export class Refused extends Error {
  constructor(detail: string, status: number, code: string);
  status: number;
  code: string;
}

/** There was no answer from the service, however often it was asked for. */
export class Unreachable extends Error {
  constructor(message: string, options?: { cause?: unknown });
}

export const BY_CODE: Record<string, typeof Refused>;
