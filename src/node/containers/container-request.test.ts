// Which containers does runAsNonRoot keep from starting?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Container, Pod } from '../../api/generated/types.ts'
import { rootRefusal } from './container-request.ts'

type Context = NonNullable<Container['securityContext']>
const whose = '(pod: "p_n(u)", container: c)'
const asUser = `container's runAsUser breaks non-root policy ${whose}`
const asImage = `container has runAsNonRoot and image will run as root ${whose}`

const table: readonly [string, Context, Context, string | undefined][] = [
  ['nobody asks for it', {}, { runAsUser: 0 }, undefined],
  ['no user is named', { runAsNonRoot: true }, {}, asImage],
  ['the container asks, and no user is named', {}, { runAsNonRoot: true }, asImage],
  ['the container takes it back', { runAsNonRoot: true }, { runAsNonRoot: false }, undefined],
  ['the pod names another user', { runAsNonRoot: true, runAsUser: 7 }, {}, undefined],
  ['the container names root', { runAsNonRoot: true, runAsUser: 7 }, { runAsUser: 0 }, asUser],
  ['the pod names root', { runAsUser: 0 }, { runAsNonRoot: true }, asUser],
  ['the container names another user', { runAsNonRoot: true, runAsUser: 0 }, { runAsUser: 7 }, undefined],
]
for (const [name, ofPod, ofContainer, expected] of table)
  test(`runAsNonRoot: ${name}`, () => {
    const container = { name: 'c', command: ['run'], securityContext: ofContainer }
    const pod: Pod = {
      metadata: { name: 'p', namespace: 'n', uid: 'u' },
      spec: { containers: [container], securityContext: ofPod },
    }
    assert.equal(rootRefusal(pod, container), expected)
  })

test('runAsNonRoot: a pause image runs as a user of its own, unless the container names root', () => {
  const pod: Pod = { metadata: { name: 'p', namespace: 'n', uid: 'u' }, spec: { containers: [] } }
  const refusal = (context: Context) =>
    rootRefusal(pod, { name: 'c', image: 'registry.k8s.io/pause:3.10', securityContext: context })
  assert.deepEqual(
    [refusal({ runAsNonRoot: true }), refusal({ runAsNonRoot: true, runAsUser: 0 })],
    [undefined, asUser],
  )
})
