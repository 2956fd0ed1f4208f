// How large may a local ephemeral volume become? KD-3, T-48 of the node's half.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Container, Pod } from '../../api/types.ts'
import { specOfPodVolume } from '../../volume/spec.ts'
import { sizeLimitOf } from './claims.ts'

const container = (limit?: string): Container => ({
  name: 'c',
  ...(limit === undefined ? {} : { resources: { limits: { 'ephemeral-storage': limit } } }),
})
const pod = (containers: Container[], initContainers: Container[] = []): Pod => ({
  metadata: { name: 'p' },
  spec: { containers, initContainers },
})
const empty = (sizeLimit?: string, medium?: 'Memory') =>
  specOfPodVolume({ name: 'v', emptyDir: { ...(sizeLimit ? { sizeLimit } : {}), ...(medium ? { medium } : {}) } })

const rows: readonly [string, Pod, ReturnType<typeof empty>, bigint][] = [
  ['no limits', pod([container()]), empty(), 0n],
  ['its own', pod([container()]), empty('5'), 5n],
  ['the pod’s, added up', pod([container('3'), container('4')]), empty(), 7n],
  ['a container without a limit adds nothing', pod([container('3'), container()]), empty(), 3n],
  ['an init container may need more than all others', pod([container('3')], [container('9')]), empty(), 9n],
  ['the smaller one: its own', pod([container('7')]), empty('5'), 5n],
  ['the smaller one: the pod’s', pod([container('4')]), empty('5'), 4n],
  ['memory has limits of its own kind', pod([container('4')]), empty('5', 'Memory'), 0n],
  ['a ConfigMap has the pod’s', pod([container('4')]), specOfPodVolume({ name: 'v', configMap: { name: 'c' } }), 4n],
  ['others have none', pod([container('4')]), specOfPodVolume({ name: 'v', hostPath: { path: '/x' } }), 0n],
]
for (const [name, owner, spec, bytes] of rows) {
  test(`KD-3, T-48: ${name}`, () => assert.equal(sizeLimitOf(owner, spec), bytes))
}
