import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claim, volume } from '../../test/kit/objects.ts'
import { volumesWithoutData } from './backup-coverage.ts'

const local = (name: string, handle: string, node?: string) => ({
  ...volume({
    name,
    claimRef: { name: `c-${name}` },
    spec: {
      csi: { driver: 'local.hawser.dev', volumeHandle: handle },
      ...(node === undefined
        ? {}
        : {
            nodeAffinity: {
              required: {
                nodeSelectorTerms: [
                  { matchExpressions: [{ key: 'topology.hawser.dev/node', operator: 'In' as const, values: [node] }] },
                ],
              },
            },
          }),
    },
  }),
})

test('every volume whose data is not in a backup is named, with the place of its data', () => {
  const objects = [
    claim(),
    local('here', 'vol-1', 'one'),
    local('there', 'vol-2', 'two'),
    { ...volume({ name: 'foreign', spec: { csi: { driver: 'nfs.example.com', volumeHandle: 'x' } } }) },
    { ...volume({ name: 'plain', spec: { hostPath: { path: '/srv' } } }) },
  ]
  assert.deepEqual(volumesWithoutData(objects, new Set(['vol-1'])), [
    'volume there (claim ns/c-there): its data is on node two',
    'volume foreign: its data is with driver nfs.example.com',
    'volume plain: its data is outside Hawser (hostPath)',
  ])
})
