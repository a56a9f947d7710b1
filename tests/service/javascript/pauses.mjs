/** How long a client waits between its tries, on a clock of our own: [pauses, what came in the end], for a script of answers. */
export async function pauses({ Client }, script, patience) {
  let clock = 0;
  const waited = [];
  performance.now = () => 1000 * clock;
  globalThis.setTimeout = (call, milliseconds) => {
    waited.push(Math.round(1000 * milliseconds) / 1e6);
    clock += milliseconds / 1000;
    queueMicrotask(call);
  };
  const answers = [...script];
  const bodies = new Set();
  const answer = async (_, { body }) => {
    bodies.add(body);
    const [status, advice] = answers.length > 1 ? answers.shift() : answers[0];
    if (status === 0) throw new TypeError("the answer was lost");
    const problem = { code: "overloaded", detail: "later" };
    return new Response(JSON.stringify(status === 200 ? { applied: true } : problem), { status, headers: { "Retry-After": advice } });
  };
  const shop = new Client("http://localhost:1", { patience, fetch: answer });
  const end = await shop.rateItem("ann", "tea", 3).then(
    () => "answered",
    (error) => error.name,
  );
  return [waited, end, bodies.size];
}
