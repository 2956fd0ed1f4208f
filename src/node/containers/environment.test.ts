import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Container, Pod } from '../../api/generated/types.ts'
import { notFound } from '../../api/status-error.ts'
import { environmentOf, expandReferences, expandStrictly } from './environment.ts'

const signal = new AbortController().signal
const pod: Pod = {
  metadata: { name: 'p', namespace: 'n', uid: 'u', labels: { app: 'web' } },
  spec: { nodeName: 'node', containers: [] },
}
const objects: Record<string, object> = {
  'ConfigMap/c': { data: { a: '1', b: '2' } },
  'Secret/s': { data: { key: Buffer.from('geheim').toString('base64') } },
}
const client = {
  get: (kind: string, { name }: { name: string }) => {
    const found = objects[`${kind}/${name}`]
    return found ? Promise.resolve(found) : Promise.reject(notFound({ group: '', plural: kind }, name))
  },
} as never // only get is used, with these two kinds
const resolve = (container: Partial<Container>) =>
  environmentOf({ client, ownNode: () => undefined, hostAddress: '10.0.0.1' }, pod, { name: 'c', ...container }, signal)

test('env wins over envFrom, references are resolved and expanded in order', async () => {
  const found = await resolve({
    envFrom: [{ prefix: 'X_', configMapRef: { name: 'c' } }],
    env: [
      { name: 'X_a', value: 'own' },
      { name: 'NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'APP', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
      { name: 'KEY', valueFrom: { secretKeyRef: { name: 's', key: 'key' } } },
      { name: 'BOTH', value: '$(NAME)-$(APP)-$$(X)-$(unknown)' },
      { name: 'GONE', valueFrom: { configMapKeyRef: { name: 'no', key: 'k', optional: true } } },
      { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } },
    ],
    resources: { limits: { cpu: '250m' } },
  })
  assert.deepEqual(found, {
    X_a: 'own',
    X_b: '2',
    NAME: 'p',
    APP: 'web',
    KEY: 'geheim',
    BOTH: 'p-web-$(X)-$(unknown)',
    CPU: '250',
  })
})

test('what is missing is named in Kubernetes’ words', async () => {
  const from = (valueFrom: object) => resolve({ env: [{ name: 'V', valueFrom }] })
  await assert.rejects(from({ configMapKeyRef: { name: 'no', key: 'k' } }), { message: 'configmap "no" not found' })
  await assert.rejects(from({ configMapKeyRef: { name: 'c', key: 'k' } }), {
    message: "couldn't find key k in ConfigMap n/c",
  })
  await assert.rejects(from({ secretKeyRef: { name: 's', key: 'k' } }), {
    message: "couldn't find key k in Secret n/s",
  })
})

test('subPathExpr refuses names without a value; other texts keep them (SUBPATH-2)', () => {
  assert.equal(expandReferences('$(A)/$(B)', { A: 'x' }), 'x/$(B)')
  assert.throws(() => expandStrictly('$(C)/$(A)/$(B)', { A: 'x', C: '' }), { message: 'missing value for B, C' })
  assert.equal(expandStrictly('$(A)$$(B)', { A: 'x' }), 'x$(B)')
})
