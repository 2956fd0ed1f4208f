// Does discovery answer as recorded in scenario 380, in every form kubectl asks for?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  aggregatedDiscovery,
  apiGroup,
  apiGroupList,
  apiResourceList,
  apiVersions,
  wantedAggregated,
} from './discovery.ts'

test('380: core resources carry names, scope, verbs and short names', () => {
  const list = apiResourceList('', 'v1')
  const named = (name: string) => list?.resources.find((resource) => 'name' in resource && resource.name === name)
  assert.equal(list?.groupVersion, 'v1')
  assert.deepEqual(named('persistentvolumes'), {
    name: 'persistentvolumes',
    singularName: 'persistentvolume',
    namespaced: false,
    kind: 'PersistentVolume',
    verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
    shortNames: ['pv'],
  })
  assert.deepEqual(named('pods/binding'), {
    name: 'pods/binding',
    singularName: '',
    namespaced: true,
    kind: 'Binding',
    verbs: ['create'],
  })
  assert.deepEqual(named('pods/eviction'), {
    name: 'pods/eviction',
    singularName: '',
    namespaced: true,
    group: 'policy',
    version: 'v1',
    kind: 'Eviction',
    verbs: ['create'],
  })
})

test('380: groups and versions', () => {
  assert.deepEqual(apiGroup('storage.k8s.io'), {
    kind: 'APIGroup',
    apiVersion: 'v1',
    name: 'storage.k8s.io',
    versions: [{ groupVersion: 'storage.k8s.io/v1', version: 'v1' }],
    preferredVersion: { groupVersion: 'storage.k8s.io/v1', version: 'v1' },
  })
  assert.equal(apiGroup('nope'), undefined)
  assert.equal(apiResourceList('storage.k8s.io', 'v9'), undefined)
  assert.match(JSON.stringify(apiGroupList()), /"authorization.k8s.io".*"hawser.dev".*"storage.k8s.io"/)
  assert.match(JSON.stringify(apiVersions('h:1')), /"versions":\["v1"\]/)
})

test('the aggregated form nests subresources; the core item has no name', () => {
  const core = aggregatedDiscovery('api', 'v2') as { items: readonly { metadata: { name?: string } }[] }
  assert.equal(core.items.length, 1)
  assert.equal(core.items[0]?.metadata.name, undefined)
  const text = JSON.stringify(aggregatedDiscovery('apis', 'v2beta1'))
  assert.match(text, /"apiVersion":"apidiscovery.k8s.io\/v2beta1"/)
  assert.match(text, /"resource":"volumeattachments".*"subresource":"status"/)
})

test('the first aggregated version that the client accepts is used', () => {
  const ask = (version: string) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`
  assert.equal(wantedAggregated(`${ask('v2')},${ask('v2beta1')},application/json`), 'v2')
  assert.equal(wantedAggregated(`${ask('v2beta1')},application/json`), 'v2beta1')
  assert.equal(wantedAggregated('application/json'), undefined)
})
