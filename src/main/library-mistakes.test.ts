// Are wrong calls of the library refused with a sentence? As programs without types make them: each mistake names what is wrong and
// what would be right.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Hawser } from '../index.ts'
import { createHttpClient, runSimulation, startHawser, UsageError } from '../index.ts'

let hawser: Hawser
let fault: unknown
const chooseFault = (rpc: string) => (rpc === 'CreateVolume' ? (fault as undefined) : undefined)
before(async () => void (hawser = await startHawser({ modelNodes: ['a'], driverFault: chooseFault })))
after(() => hawser[Symbol.asyncDispose]())

type Loose = (...args: unknown[]) => unknown
const [loosely, never] = [(call: unknown) => call as Loose, () => true]
const pod = { name: 'x', namespace: 'default' }
const claim = { metadata: { name: 'data', namespace: 'default' }, spec: { accessModes: ['ReadWriteOnce'] } }

const mistakes: Readonly<Record<string, readonly [(on: Hawser) => unknown, RegExp]>> = {
  'why of nothing': [({ why }) => loosely(why)(), /why takes \{ kind, name, namespace \}, not undefined/],
  'why of a kind that it does not know': [
    ({ why }) => loosely(why)({ kind: 'Secret', name: 'x' }),
    /why knows nothing of kind "Secret"/,
  ],
  'why without a name': [({ why }) => loosely(why)({ kind: 'Pod', namespace: 'default' }), /a Pod is named by a text/],
  'why without a namespace': [
    ({ why }) => loosely(why)({ kind: 'Pod', name: 'x' }),
    /Pod x is in a namespace, and none is named/,
  ],
  'why with something else': [({ why }) => loosely(why)({ kind: 'Pod', ...pod, uid: '1' }), /why has no option "uid"/],
  'waitFor without a test': [({ waitFor }) => loosely(waitFor)('Pod', pod), /waitFor takes a function/],
  'waitFor without a namespace': [
    ({ waitFor }) => loosely(waitFor)('Pod', { name: 'x' }, never),
    /Pod x is in a namespace, and none is named/,
  ],
  'waitFor with another option': [
    ({ waitFor }) => loosely(waitFor)('Pod', pod, never, { timeout: 5 }),
    /waitFor has no option "timeout"/,
  ],
  'waitFor with a time that is none': [
    ({ waitFor }) => loosely(waitFor)('Pod', pod, never, { timeoutMs: '5s' }),
    /timeoutMs must be a number of milliseconds above 0, not "5s"/,
  ],
  'get without a namespace': [
    ({ client }) => client.get('Pod', { name: 'x' }),
    /Pod x is in a namespace, and none is named/,
  ],
  'create without a namespace': [
    ({ client }) => client.create('PersistentVolumeClaim', { metadata: { name: 'x' }, spec: {} }),
    /PersistentVolumeClaim x is in a namespace, and none is named/,
  ],
  'create with a field that does not exist': [
    ({ client }) => loosely(client.create)('PersistentVolumeClaim', { ...claim, spec: { accesModes: [] } }),
    /PersistentVolumeClaim data has no field spec\.accesModes/,
  ],
  'patch with a field that does not exist': [
    ({ client }) => client.patch('Pod', pod, { type: 'merge', body: { spec: { nodename: 'a' } } }),
    /Pod x has no field spec\.nodename/,
  ],
  'list with an option that does not exist': [
    ({ client }) => loosely(client.list)('Pod', { labelselector: 'a=b' }),
    /list has no option "labelselector"/,
  ],
  'a simulation without a seed': [() => loosely(runSimulation)({}), /runSimulation needs a seed/],
  'a simulation of nothing': [() => loosely(runSimulation)(), /runSimulation takes an object of options/],
  'a simulation with a wrong number': [
    () => loosely(runSimulation)({ seed: 1, steps: -2 }),
    /option steps must be a whole number from 1, not -2/,
  ],
  'a simulation with another option': [
    () => loosely(runSimulation)({ seed: 1, step: 2 }),
    /runSimulation has no option "step"/,
  ],
  'a client over HTTP without a namespace': [
    ({ url }) => createHttpClient({ url }).get('Pod', { name: 'x' }),
    /Pod x is in a namespace, and none is named/,
  ],
}

for (const [name, [call, says]] of Object.entries(mistakes))
  test(`${name} is refused`, async () => {
    const made = (async () => void (await call(hawser)))()
    await assert.rejects(made, (error: Error) => {
      assert.match(error.message, says)
      return error instanceof UsageError
    })
  })

test('a wait that takes too long says why, and a fault that is none is told', async () => {
  const ref = { name: 'slow', namespace: 'default' }
  fault = { kind: 'refuse' }
  await hawser.client.create('PersistentVolumeClaim', {
    metadata: ref,
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  })
  await assert.rejects(
    hawser.waitFor('PersistentVolumeClaim', ref, (object) => object?.status?.phase === 'Bound', { timeoutMs: 1_500 }),
    /within 1500 ms: .*driverFault answered \{"kind":"refuse"\}, which is no fault/,
  )
  fault = undefined
})
