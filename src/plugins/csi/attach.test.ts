import assert from 'node:assert/strict'
import test from 'node:test'
import type { KindMap } from '../../api/kinds.ts'
import { alreadyExists, forbidden, notFound, serviceUnavailable } from '../../api/status-error.ts'
import type { CSIDriver, VolumeAttachment } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import { createInformer } from '../../client/informer.ts'
import type { Informers } from '../../client/informer.ts'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { VolumeError } from '../../volume/effect.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import { attachmentName, createCsiAttachment } from './attach.ts'

const never = new AbortController().signal
const group = { group: 'storage.k8s.io', plural: 'volumeattachments' }
const name = attachmentName('h', 'd', 'n')
const spec = {
  name: 'pv',
  from: 'persistentVolume',
  mode: 'Filesystem',
  readOnly: false,
  source: { kind: 'csi', value: { driver: 'd', volumeHandle: 'h' } },
} as VolumeSpec

/** A server that holds attachments, and a cache that hears of them only when told to. */
function setUp() {
  const clock = createVirtualClock()
  const attachments = createInformer<VolumeAttachment>()
  const drivers = createInformer<CSIDriver>()
  drivers.replace([], '0')
  attachments.replace([], '0')
  const stored = new Map<string, VolumeAttachment>()
  let version = 0
  let failure: Error | undefined
  const put = (object: VolumeAttachment) => {
    const next = {
      ...object,
      metadata: {
        ...object.metadata,
        uid: object.metadata.uid ?? `uid-${version}`,
        resourceVersion: String(++version),
      },
    }
    stored.set(name, next)
    return next
  }
  const calls: string[] = []
  const client = {
    async get() {
      calls.push('get')
      const found = stored.get(name)
      if (!found) throw notFound(group, name)
      return found
    },
    async create(_kind: string, object: VolumeAttachment) {
      calls.push('create')
      if (failure) throw failure
      if (stored.has(name)) throw alreadyExists(group, name)
      return put(object)
    },
    async remove() {
      calls.push('remove')
      const found = stored.get(name)
      if (!found) throw notFound(group, name)
      if (found.metadata.finalizers?.length)
        return put({ ...found, metadata: { ...found.metadata, deletionTimestamp: 'now' } })
      stored.delete(name)
      version++
      return undefined
    },
  } as unknown as Client
  const informers = {
    of: (kind: keyof KindMap) => (kind === 'CSIDriver' ? drivers : attachments),
  } as unknown as Informers
  const plugin = createCsiAttachment({ client, informers, clock })
  return {
    clock,
    plugin,
    stored,
    calls,
    drivers,
    attacher: plugin.attacher!(spec)!,
    fail: (error: Error) => void (failure = error),
    put,
    /** The cache hears what the server holds now. */
    hear() {
      const found = stored.get(name)
      if (found) attachments.apply({ type: 'modified', object: found })
      else if (attachments.get(name))
        attachments.apply({
          type: 'deleted',
          object: {
            ...attachments.get(name)!,
            metadata: { ...attachments.get(name)!.metadata, resourceVersion: String(++version) },
          },
        })
      attachments.apply({ type: 'bookmark', resourceVersion: String(version) })
    },
    status(status: VolumeAttachment['status'] & object, finalizers = ['x']) {
      const found = stored.get(name)!
      put({ ...found, metadata: { ...found.metadata, finalizers }, status })
    },
  }
}

const effectOf = (effect: string, text: RegExp) => (error: unknown) =>
  error instanceof VolumeError && error.effect === effect && text.test(error.message)

test('the name follows from handle, driver and node (CSI-8)', () => {
  assert.match(name, /^csi-[0-9a-f]{64}$/)
  assert.notEqual(attachmentName('h', 'd', 'm'), name)
})

test('drivers without an object want attaching, those that say no do not, inline volumes never (CSI-20)', () => {
  const { plugin, drivers } = setUp()
  assert.ok(plugin.attacher!(spec))
  drivers.apply({
    type: 'added',
    object: { metadata: { name: 'd', resourceVersion: '9' }, spec: { attachRequired: false } },
  })
  assert.equal(plugin.attacher!(spec), undefined)
  assert.ok(plugin.attacherByName!())
  assert.equal(
    setUp().plugin.attacher!({ ...spec, from: 'pod', source: { kind: 'csi', value: { driver: 'd' } } } as VolumeSpec),
    undefined,
  )
})

test('an attachment is created and its own change is the answer (CSI-21)', async () => {
  const { attacher, clock, stored, hear, status } = setUp()
  const attached = attacher.attach({ spec, node: 'n' }, never)
  await clock.settle()
  assert.deepEqual(stored.get(name)?.spec, { attacher: 'd', nodeName: 'n', source: { persistentVolumeName: 'pv' } })
  hear()
  status({ attached: true })
  hear()
  assert.equal(await attached, '')
})

test('an attach error is told with its words, and leaves doubt (CSI-21)', async () => {
  const { attacher, clock, hear, status } = setUp()
  const attached = attacher.attach({ spec, node: 'n' }, never)
  const failed = assert.rejects(attached, effectOf('unknown', /^backend says no$/))
  await clock.settle()
  status({ attached: false, attachError: { message: 'backend says no' } })
  hear()
  await failed
})

test('an attachment that is removed while we wait ends the wait (CSI-21)', async () => {
  const { attacher, clock, hear, stored } = setUp()
  const failed = assert.rejects(attacher.attach({ spec, node: 'n' }, never), effectOf('unknown', /deleted/))
  await clock.settle()
  hear()
  await clock.settle()
  stored.delete(name)
  hear()
  await failed
})

test('two minutes without an answer are enough (CSI-21)', async () => {
  const { attacher, clock, hear } = setUp()
  const text = /^timed out waiting for external-attacher of d CSI driver to attach volume h$/
  const failed = assert.rejects(attacher.attach({ spec, node: 'n' }, never), effectOf('unknown', text))
  await clock.settle()
  hear()
  await clock.advance(120_000)
  await failed
})

test('what the API refuses was never tried; what it lost may have happened (CSI-21)', async () => {
  const refused = setUp()
  refused.fail(forbidden(group, name, 'no'))
  await assert.rejects(refused.attacher.attach({ spec, node: 'n' }, never), effectOf('untried', /forbidden/))
  const lost = setUp()
  lost.fail(serviceUnavailable('away'))
  await assert.rejects(lost.attacher.attach({ spec, node: 'n' }, never), effectOf('unknown', /away/))
})

test('an attached object in the cache that is being removed on the server is not taken for attached', async () => {
  const { attacher, clock, put, hear, status, stored } = setUp()
  put({ metadata: { name }, spec: { attacher: 'd', nodeName: 'n', source: { persistentVolumeName: 'pv' } } })
  status({ attached: true })
  hear()
  const found = stored.get(name)!
  put({ ...found, metadata: { ...found.metadata, deletionTimestamp: 'now' } }) // the cache has not heard this yet
  const failed = assert.rejects(attacher.attach({ spec, node: 'n' }, never), effectOf('unknown', /being deleted/))
  await clock.settle()
  hear()
  await failed
})

test('a detach is over when the object is gone, and not because the cache never knew it (CSI-22)', async () => {
  const { attacher, clock, put, hear, status, stored } = setUp()
  put({ metadata: { name }, spec: { attacher: 'd', nodeName: 'n', source: { persistentVolumeName: 'pv' } } })
  status({ attached: true })
  let over = false
  const detached = attacher.detach({ volumeName: 'd^h', node: 'n' }, never).then(() => (over = true))
  await clock.settle()
  assert.equal(over, false)
  hear()
  await clock.settle()
  assert.equal(over, false)
  stored.delete(name)
  hear()
  await detached
})

test('gone already is done; a detach error is told; a wrong name is never tried (CSI-22)', async () => {
  const gone = setUp()
  await gone.attacher.detach({ volumeName: 'd^h', node: 'n' }, never)
  const { attacher, clock, put, hear, status } = setUp()
  put({ metadata: { name }, spec: { attacher: 'd', nodeName: 'n', source: { persistentVolumeName: 'pv' } } })
  status({ attached: true })
  const failed = assert.rejects(attacher.detach({ volumeName: 'd^h', node: 'n' }, never), effectOf('unknown', /^busy$/))
  await clock.settle()
  status({ attached: true, detachError: { message: 'busy' } })
  hear()
  await failed
  for (const volumeName of ['only-one', '^h', 'd^'])
    await assert.rejects(attacher.detach({ volumeName, node: 'n' }, never), effectOf('untried', /is not <driver>/))
})

test('attached is what the object says, read live when the cache has none; missing is a definite no (CSI-23)', async () => {
  const { attacher, put, status, drivers } = setUp()
  assert.deepEqual(await attacher.verify({ specs: [spec], node: 'n' }, never), [false])
  put({ metadata: { name }, spec: { attacher: 'd', nodeName: 'n', source: { persistentVolumeName: 'pv' } } })
  status({ attached: true })
  assert.deepEqual(await attacher.verify({ specs: [spec], node: 'n' }, never), [true])
  drivers.apply({
    type: 'added',
    object: { metadata: { name: 'd', resourceVersion: '9' }, spec: { attachRequired: false } },
  })
  assert.deepEqual(await attacher.verify({ specs: [spec], node: 'other' }, never), [true])
})

test('a handle with the mark in it is detached like any other (WART-18)', async () => {
  const removed: string[] = []
  const informer = createInformer<VolumeAttachment>()
  informer.replace([], '0')
  const client = {
    async remove(_kind: string, ref: { name: string }) {
      removed.push(ref.name)
      throw notFound(group, ref.name)
    },
  } as unknown as Client
  const informers = { of: () => informer } as unknown as Informers
  const plugin = createCsiAttachment({ client, informers, clock: createVirtualClock() })
  await plugin.attacherByName!()!.detach({ volumeName: 'd^zone^7', node: 'n' }, never)
  assert.deepEqual(removed, [attachmentName('zone^7', 'd', 'n')])
})
