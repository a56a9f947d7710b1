/** node run.mjs MODULE SCRIPT FUNCTION ARGUMENTS: print what a function makes of the client, as JSON. */
const [module, script, name, given] = process.argv.slice(2);
const [albatross, scripted] = await Promise.all([import(module), import(script)]);
console.log(JSON.stringify(await scripted[name](albatross, ...JSON.parse(given))));
