// Has every command been tried, in good ways and in bad? Each is listed with the tests that hold its transcripts; a command
// that is not listed, or whose test is gone, fails. Every command is also given a flag that it does not have.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { generateHelpTextForAllCommands } from '@stricli/core'
import type { Application, CommandContext } from '@stricli/core'
import { createApplication } from '../../src/cli/app.ts'
import { hawser } from '../kit/command-line.ts'

/** `file: name of the test`; a name ends where the test's own name may go on. */
interface Transcripts {
  readonly works: readonly string[]
  readonly fails: readonly string[]
}

const objects = (name: string) => `objects.test.ts: ${name}`
const machine = (name: string) => `machine.test.ts: ${name}`
const volumes = (name: string) => `volumes.test.ts: ${name}`
const agents = (name: string) => `agent.test.ts: ${name}`
const joins = (name: string) => `join.test.ts: ${name}`
const proxies = (name: string) => `driver-proxy.test.ts: ${name}`
const labs = (name: string) => `lab.test.ts: ${name}`
const stores = (name: string) => `../store/migrate.test.ts: ${name}`
const look = (name: string) => `look.test.ts: ${name}`
const notThere = objects('what is not there is exit code 3')
const mistake = objects('a mistake is told in a sentence')

const transcripts: Readonly<Record<string, Transcripts>> = {
  up: {
    works: [machine('doctor compares with a server that runs')],
    fails: [machine('up tells what is in its way'), machine('up without rights')],
  },
  agent: {
    works: [agents('an agent joins a server')],
    fails: [agents('an agent says which'), agents('an agent whose server')],
  },
  stop: { works: ['stop.test.ts: stop ends'], fails: ['stop.test.ts: stop says'] },
  demo: {
    works: ['demo.test.ts: the whole story is told', 'demo.test.ts: on models'],
    fails: ['demo.test.ts: interrupted'],
  },
  why: {
    works: [agents('an agent joins a server')],
    fails: ['../docs/why-on-a-node.test.ts: each pod and claim', '../docs/why-on-a-node.test.ts: why refuses'],
  },
  explain: { works: [objects('explain prints the page')], fails: [objects('explain prints the page')] },
  get: { works: [objects('get shows tables')], fails: [notThere, mistake, objects('no server is exit code 5')] },
  describe: { works: [objects('describe shows an object')], fails: [notThere] },
  apply: { works: [objects('apply creates')], fails: [mistake, objects('files with mistakes are named')] },
  delete: { works: [objects('delete shows what is lost')], fails: [notThere, mistake] },
  logs: { works: [volumes('logs prints, tails')], fails: [notThere, mistake] },
  exec: { works: [look('exec: streams')], fails: [look('exec: streams, exit code, terminal, and what is wrong')] },
  attach: { works: [look('attach listens')], fails: [look('attach listens from now on, to what is there')] },
  cp: { works: [look('cp: a file and a tree')], fails: [look('cp: a file and a tree, there and back')] },
  'port-forward': { works: [look('port-forward: a port here')], fails: [look('port-forward: a port here')] },
  events: { works: [objects('events are listed')], fails: [objects('events and why of what')] },
  'volume create': {
    works: [volumes('volume create tells')],
    fails: [mistake, objects('volume commands on a server without nodes')],
  },
  'volume ls': { works: [volumes('volume ls and inspect')], fails: [objects('no server is exit code 5')] },
  'volume inspect': { works: [volumes('volume ls and inspect')], fails: [notThere] },
  'volume resize': {
    works: [volumes('volume resize grows')],
    fails: [notThere, volumes('volume resize grows, and refuses')],
  },
  'volume export': { works: [volumes('volume export writes')], fails: [notThere] },
  'volume snapshot': { works: [volumes('volume snapshot and restore')], fails: [notThere] },
  'volume restore': { works: [volumes('volume snapshot and restore')], fails: [notThere] },
  'volume rm': { works: [volumes('volume rm deletes')], fails: [notThere, objects('volume rm shows its plan')] },
  run: { works: [volumes('run mounts the claim')], fails: [notThere, mistake, volumes('a signal ends')] },
  detach: { works: [volumes('detach refuses what is in use, and by force')], fails: [notThere, mistake] },
  'driver check': {
    works: [machine('the built-in driver serves alone')],
    fails: [machine('driver check finds'), machine('driver check and rpc refuse')],
  },
  'driver ls': { works: [objects('driver ls shows')], fails: [objects('no server is exit code 5')] },
  'driver trace': { works: [proxies('a proxy shows and fails')], fails: [proxies('a proxy shows and fails')] },
  'driver proxy': { works: [proxies('a proxy shows and fails')], fails: [proxies('a proxy shows and fails')] },
  'driver rpc': { works: [machine('driver rpc speaks')], fails: [machine('driver rpc speaks')] },
  'driver serve': { works: [machine('the built-in driver serves alone')], fails: [machine('driver serve says')] },
  'lab run': { works: [labs('lab run tests the built-in driver')], fails: [labs('lab run says what is wrong')] },
  'lab ls': { works: [labs('lab ls lists')], fails: [labs('lab ls lists')] },
  'lab explain': { works: [labs('lab explain tells')], fails: [labs('lab explain tells')] },
  doctor: {
    works: [machine('doctor compares')],
    fails: [machine('doctor names problems'), machine('doctor after a kill')],
  },
  audit: { works: [objects('audit searches that log')], fails: [objects('audit searches that log')] },
  backup: { works: [machine('a backup is taken')], fails: [machine('half a backup is refused')] },
  restore: { works: [machine('a backup is taken')], fails: [machine('half a backup is refused')] },
  'store check': {
    works: [stores('objects move to etcd and back')],
    fails: [stores('a target that holds anything else is refused')],
  },
  'store migrate': {
    works: [stores('objects move to etcd and back')],
    fails: [stores('a target that holds anything else is refused')],
  },
  sim: { works: [machine('sim is the same')], fails: [machine('sim is the same')] },
  bench: { works: [machine('bench lists what can be measured')], fails: [machine('bench lists what can be measured')] },
  'token create': { works: [objects('a token works')], fails: [objects('a token works')] },
  'token join-command': { works: [joins('a machine joins')], fails: [joins('a server on loopback')] },
  'node cordon': { works: [], fails: [notThere] },
  'node uncordon': { works: [joins('a machine joins')], fails: [notThere] },
  'node drain': { works: [joins('a machine joins')], fails: [notThere] },
  'node rm': { works: [joins('a machine joins')], fails: [joins('a machine joins')] },
  completion: { works: [objects('every command has help')], fails: [mistake] },
  version: { works: [objects('version names the server')], fails: [] },
}

// Only names are read here; no command runs, so the context's kind does not matter.
const application = (await createApplication()) as unknown as Application<CommandContext>
const groups = ['volume', 'driver', 'lab', 'store', 'token', 'node']
const commands = generateHelpTextForAllCommands(application)
  .map(([route]) => route.replace(/^hawser ?/, ''))
  .filter((route) => route !== '' && !route.startsWith('__') && !groups.includes(route))

test('every command has transcripts, and none is listed that is no command', () => {
  assert.deepEqual(commands.toSorted(), Object.keys(transcripts).toSorted())
})

test('every listed transcript is a test that exists', () => {
  const missing = Object.values(transcripts)
    .flatMap(({ works, fails }) => [...works, ...fails])
    .filter((entry) => {
      const [file = '', name = ''] = entry.split(': ')
      return (
        !/\btest\(\s*['"`]/.test(readFileSync(join(import.meta.dirname, file), 'utf8')) ||
        !titlesOf(file).some((title) => title.startsWith(name))
      )
    })
  assert.deepEqual([...new Set(missing)], [])
})

function titlesOf(file: string): readonly string[] {
  const text = readFileSync(join(import.meta.dirname, file), 'utf8')
  return [...text.matchAll(/\btest\(\s*(['"`])(.*?)(?:\1|\$\{)/g)].map((match) => match[2]!)
}

for (const command of commands)
  test(`a flag that does not exist is told in a sentence: hawser ${command}`, async () => {
    const { code, err, out } = await hawser([...command.split(' '), '--no-such-flag'])
    assert.deepEqual([code, out], [2, ''], err)
    assert.match(err, /No flag registered for --no-such-flag/)
    assert.doesNotMatch(err, /\n {4}at /)
  })

const misspelt: readonly (readonly [string, string])[] = [
  ['up --data-dirr x', '--data-dir'],
  ['up --datadir x', '--data-dir'],
  ['up --no-mount-token', '--no-mount-tokens'],
  ['agent --jion x', '--join'],
  ['agent --leave-to-sidecar x', '--leave-to-sidecars'],
  ['volume create --sise 1', '--size'],
  ['driver serve --sokcet x', '--socket'],
  ['get --namspace x', '--namespace'],
]

for (const [line, meant] of misspelt)
  test(`a misspelt flag is told with the nearest one: hawser ${line}`, async () => {
    const { code, err } = await hawser(line.split(' '))
    const [, flag = ''] = /(--\S+)/.exec(line) ?? []
    assert.deepEqual([code, err], [2, `No flag registered for ${flag}, did you mean ${meant}?\n`])
  })

test('a misspelt flag is not answered with a flag of another command', async () => {
  const { err } = await hawser(['volume', 'rm', '--sise', '1'])
  assert.equal(err, 'No flag registered for --sise\n')
})
