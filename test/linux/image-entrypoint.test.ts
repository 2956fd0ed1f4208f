// Does a pod say Running only of a process? Containers without a command, on a real `hawser up`. Needs root.
import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Container, Pod } from '../../src/api/generated/types.ts'
import type { HttpClient } from '../../src/client/http.ts'
import { createHttpClient } from '../../src/client/http.ts'
import { untilWhy } from '../kit/assert-why.ts'
import { podOn, until } from '../kit/agent-fixture.ts'
import { needsRoot as skip } from '../kit/machine.ts'
import type { ServerProcess } from '../kit/server-process.ts'
import { startServer } from '../kit/server-process.ts'

const programs = mkdtempSync(join(tmpdir(), 'hawser-entrypoint-'))
const program = join(programs, 'echo-words')
let server: ServerProcess
let client: HttpClient

before(async () => {
  if (skip) return
  writeFileSync(program, '#!/bin/sh\nfor word; do echo "[$word]"; done\n')
  chmodSync(program, 0o755)
  chmodSync(programs, 0o755)
  const map = `tools/echo=${program} by default`
  server = await startServer(['--store', 'memory', '--mount-tokens', '--image-entrypoint', map])
  client = createHttpClient({ url: server.url, token: server.token, insecureSkipTlsVerify: true })
})
after(async () => {
  client?.[Symbol.dispose]()
  await server?.[Symbol.asyncDispose]()
  rmSync(programs, { recursive: true })
})

const nodeName = hostname().toLowerCase()
const at = (name: string) => ({ namespace: 'default', name })
const start = (name: string, container: Partial<Container>, more: Partial<NonNullable<Pod['spec']>> = {}) => {
  const pod = podOn(name, { containers: [{ name: 'c', image: 'nginx:1', ...container }], ...more })
  return client.create('Pod', { ...pod, spec: { ...pod.spec, nodeName } })
}
const statusOf = async (name: string) => (await client.get('Pod', at(name))).status
const logOf = (name: string) => {
  const pods = join(server.dataDirectory, 'logs', nodeName, 'pods')
  const directory = readdirSync(pods).find((each) => each.startsWith(`default_${name}_`))!
  return readFileSync(join(pods, directory, 'c/0.log'), 'utf8')
}

for (const restartPolicy of ['Always', 'Never'] as const)
  test(`a container without a command waits and says why, with restartPolicy ${restartPolicy}`, { skip }, async () => {
    const name = `silent-${restartPolicy.toLowerCase()}`
    await start(name, {}, { restartPolicy })
    const phases = new Set<string | undefined>()
    const waiting = await until('it waits', async () => {
      const status = await statusOf(name)
      phases.add(status?.phase)
      return status?.containerStatuses?.[0]?.state?.waiting?.message === undefined ? undefined : status
    })
    const [container] = waiting.containerStatuses!
    assert.deepEqual([...phases], ['Pending'])
    assert.equal(container!.ready, false)
    assert.equal(container!.state?.waiting?.reason, 'CreateContainerError')
    assert.match(container!.state?.waiting?.message ?? '', /container c .*no command.* nginx:1 .*--image-entrypoint/)
    const told = await until('it is told', async () => {
      const { items } = await client.list('Event', { namespace: 'default' })
      return items.find((event) => event.involvedObject.name === name && event.reason === 'Failed')
    })
    assert.match(told.message ?? '', /--image-entrypoint nginx:1=PATH/)
    const { blocked } = await untilWhy(client, `pod/${name}`, 'noCommand')
    assert.match(blocked?.sentence ?? '', /container c .*nginx:1/)
    await client.remove('Pod', at(name))
    await until('it is gone', async () => !(await client.list('Pod', {})).items.some((p) => p.metadata.name === name))
  })

test('args that begin with a dash name no program', { skip }, async () => {
  await start('flags', { args: ['--port=80'] })
  await untilWhy(client, 'pod/flags', 'noCommand')
  await client.remove('Pod', at('flags'))
})

test('an image that is mapped to a program runs it, and args replace its default words', { skip }, async () => {
  const image = 'tools/echo:3'
  await start('plain', { image })
  await start('args', { image, args: ['one', '$(WHO) two'], env: [{ name: 'WHO', value: 'me' }] })
  await start('command', { image, command: ['echo', 'own'] })
  for (const name of ['plain', 'args', 'command']) {
    await until(`${name} has ended`, async () => (await statusOf(name))?.phase === 'Succeeded')
  }
  assert.equal(logOf('plain'), '[by]\n[default]\n')
  assert.equal(logOf('args'), '[one]\n[me two]\n')
  assert.equal(logOf('command'), 'own\n')
  for (const name of ['plain', 'args', 'command']) await client.remove('Pod', at(name))
})

test('a pause is a process, as no root, and ends when it is asked to', { skip }, async () => {
  await start('rest', { image: 'registry.k8s.io/pause:3.10', securityContext: { runAsNonRoot: true } })
  await until('it runs', async () => (await statusOf('rest'))?.phase === 'Running')
  const { uid } = (await client.get('Pod', at('rest'))).metadata
  const [pid] = readFileSync(join(server.dataDirectory, 'containers', nodeName, uid!, 'c/0/pid'), 'utf8').split(' ')
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
  assert.match(readFileSync(`/proc/${children[0]}/status`, 'utf8'), /^Uid:\t65535\t/m)
  await client.remove('Pod', at('rest'))
  await until('it is gone', async () => (await client.list('Pod', {})).items.length === 0)
})

test(
  'with --mount-tokens a pod sees its token, the authority and its namespace, and the server knows the token',
  { skip },
  async () => {
    const path = '/var/run/secrets/kubernetes.io/serviceaccount'
    const command = ['sh', '-c', `cat ${path}/namespace; echo; cat ${path}/ca.crt; echo; cat ${path}/token`]
    await start('caller', { command }, { automountServiceAccountToken: true, restartPolicy: 'Never' })
    await until('it has ended', async () => (await statusOf('caller'))?.phase === 'Succeeded')
    const [namespace, ...lines] = logOf('caller').split('\n')
    assert.equal(namespace, 'default')
    assert.match(lines.join('\n'), /^-----BEGIN CERTIFICATE-----/)
    using asPod = createHttpClient({ url: server.url, token: lines.at(-1)!, insecureSkipTlsVerify: true })
    await assert.rejects(asPod.list('Secret', {}), /system:serviceaccount:default:default/)
    await client.remove('Pod', at('caller'))
  },
)
