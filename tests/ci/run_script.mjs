// Runs a script of actions/github-script with a GitHub that answers from `answers` and records every call.
import { createRequire } from 'node:module'
const { script, context, answers } = JSON.parse(process.argv[2])
const calls = []
const method = (name) => Object.assign(async (parameters) => {
  calls.push([name, parameters])
  return { data: answers[name] ?? {} }
}, { called: name })
const rest = new Proxy({}, { get: (_, area) => new Proxy({}, { get: (_, one) => method(`${area}.${one}`) }) })
const github = { rest, paginate: async (one, parameters) => (await one(parameters)).data }
const outputs = {}
const core = { setOutput: (name, value) => { outputs[name] = value }, notice: (text) => { outputs.notice = text } }
const AsyncFunction = (async () => {}).constructor
const run = new AsyncFunction('github', 'context', 'core', 'require', script)
await run(github, context, core, createRequire(import.meta.url))
console.log(JSON.stringify({ calls, outputs }))
