// Runs a file of Artillery with Artillery's own engines, as `artillery run` does with one worker:
// node artillery.js load.yml

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import yaml from "js-yaml";

const require = createRequire(import.meta.url);
const core = require("@artilleryio/int-core");
const { engine_util: util } = require("@artilleryio/int-commons");
const parseCsv = require("csv-parse/lib/sync");

const file = process.argv[2];
await core.updateGlobalObject();
const script = yaml.safeLoad(readFileSync(file, "utf8"));
// `resolveConfigTemplates` of `lib/util.ts`.
script.config = util.template(script.config, {
  vars: { $env: process.env, $processEnvironment: process.env },
  funcs: core.runner.contextFuncs,
});
// `readPayload` and `prepareTestExecutionPlan` of `lib/util/prepare-test-execution-plan.ts`.
const payloads = [script.config.payload ?? []].flat();
for (const payload of payloads) {
  payload.data = parseCsv(readFileSync(join(dirname(file), payload.path), "utf8"), {
    skip_empty_lines: payload.skipEmptyLines ?? true,
    cast: payload.cast ?? true,
    from_line: payload.skipHeader === true ? 2 : 1,
    delimiter: payload.delimiter || ",",
  });
}
script.config.payload = payloads.length > 0 ? payloads : undefined;
script.config.phases ??= [{ duration: 1, arrivalCount: 1 }];
const setup = await core.runner.runnerFuncs.handleScriptHook("before", script, { emit() {} });
const runner = await core.runner.runner(script, script.config.payload, {});
runner.on("done", async () => {
  await runner.stop();
  await core.runner.runnerFuncs.handleScriptHook("after", script, { emit() {} }, setup);
  process.exit(0);
});
runner.run(setup);
