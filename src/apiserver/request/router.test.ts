// What do paths mean? A table of the forms that clients use and those that must lead nowhere.
import assert from 'node:assert/strict'
import test from 'node:test'
import { route } from './router.ts'

const cases: Readonly<Record<string, string>> = {
  '/api/v1/persistentvolumes': 'PersistentVolume - - -',
  '/api/v1/persistentvolumes/v/status': 'PersistentVolume - v status',
  '/api/v1/pods': 'Pod - - -',
  '/api/v1/namespaces/ns/pods/p': 'Pod ns p -',
  '/api/v1/namespaces/ns/pods/p/binding': 'Pod ns p binding',
  '/api/v1/namespaces/ns': 'Namespace - ns -',
  '/api/v1/namespaces/ns/status': 'Namespace - ns status',
  '/api/v1/namespaces/ns/finalize': 'Namespace - ns finalize',
  '/api/v1/namespaces/pods/pods': 'Pod pods - -',
  '/api/v1/watch/pods': 'Pod - - - watch',
  '/apis/storage.k8s.io/v1/storageclasses/a%2Eb': 'StorageClass - a.b -',
  '/apis/events.k8s.io/v1/namespaces/ns/events': 'EventsEvent ns - -',
  '/apis/authentication.k8s.io/v1/tokenreviews': 'review tokenreviews',
  '/apis/authorization.k8s.io/v1/namespaces/ns/localsubjectaccessreviews': 'review localsubjectaccessreviews ns',
  '/apis': 'document /apis',
  '/apis/storage.k8s.io/v1': 'document /apis/storage.k8s.io/v1',
  '/healthz/': 'document /healthz',
  '/api/v1/pods/p': 'none known',
  '/api/v1/nothings': 'none known',
  '/apis/none.example/v1/things': 'none',
  '/api/v2/pods': 'none',
  '/api/v1/namespaces/ns/persistentvolumes': 'none known',
  '/api/v1/namespaces/ns/pods/p/binding/more': 'none known',
  '/api/v1/namespaces/../pods': 'none',
  '/api/v1/namespaces/%2e%2e/pods': 'none',
  '/api/v1/namespaces/a%2Fb/pods': 'none',
  '/api//v1': 'none',
  '/api/v1/%zz': 'none',
}

for (const [path, meaning] of Object.entries(cases)) {
  test(`${path} means ${meaning}`, () => {
    assert.equal(described(path), meaning)
  })
}

function described(path: string): string {
  const found = route(path)
  switch (found.kind) {
    case 'resource': {
      const { info, namespace = '-', name = '-', subresource = '-', watch } = found
      return `${info.name} ${namespace} ${name} ${subresource}${watch ? ' watch' : ''}`
    }
    case 'review':
      return `review ${found.review}${found.namespace === undefined ? '' : ` ${found.namespace}`}`
    case 'document':
      return `document ${found.path}`
    case 'none':
      return found.known ? 'none known' : 'none'
    default:
      return found satisfies never
  }
}
