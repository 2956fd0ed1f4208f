// Do the five stories of ARCHITECTURE.md name the files that do the work? Each is lived on a cluster in this process, and V8
// says which functions ran. What also runs while nothing happens does not count.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startModelCluster } from './cluster.ts'
import type { ModelCluster } from './cluster.ts'
import { startCoverage } from './coverage.ts'
import type { Coverage, Ran } from './coverage.ts'
import { startPodToLookInto } from './exec.ts'
import type { PodToLookInto } from './exec.ts'
import { compare, idleLinks, storiesOf } from './stories.ts'

const root = join(import.meta.dirname, '../..')
const stories = storiesOf(readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8'))
const namespace = 'default'
const claims = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`
const pods = `/api/v1/namespaces/${namespace}/pods`

let cluster: ModelCluster
let coverage: Coverage
let idle: Ran
let lookedInto: PodToLookInto
const ranInAny = new Set<string>()

before(async () => {
  cluster = await startModelCluster('n1')
  cluster.startAgent()
  await cluster.until('the node is ready', async () => {
    const { items } = await cluster.client.list('Node', {})
    return items[0]?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true
  })
  const driver = 'model.hawser.dev'
  await cluster.client.create('CSIDriver', { metadata: { name: driver }, spec: { attachRequired: true } })
  const drivers = [{ name: driver, nodeID: 'n1', topologyKeys: [] }]
  await cluster.client.create('CSINode', { metadata: { name: 'n1' }, spec: { drivers } })
  await cluster.server.post('/apis/storage.k8s.io/v1/storageclasses', {
    metadata: { name: 'model' },
    provisioner: driver,
    reclaimPolicy: 'Delete',
  })
  lookedInto = await startPodToLookInto()
  coverage = await startCoverage(root)
  await cluster.clock.advance(30_000)
  await coverage.take()
  // The questions that the walks ask themselves count as idle, too.
  await cluster.clock.advance(60_000)
  await Promise.all([claim(), pod(), isEmpty()])
  idle = await coverage.take()
})

after(async () => {
  coverage[Symbol.dispose]()
  await lookedInto[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
})

test('each story of the document has a walk here', () => {
  assert.deepEqual([...stories.byTitle.keys()].toSorted(), Object.keys(walks).toSorted())
})

/** The steps of a story, as a user would take them. */
const walks: Readonly<Record<string, () => Promise<void>>> = {
  async 'A claim binds'() {
    const spec = { storageClassName: 'model', accessModes: ['ReadWriteOnce'] }
    const request = { resources: { requests: { storage: '1Gi' } } }
    await cluster.server.post(claims, { metadata: { name: 'data' }, spec: { ...spec, ...request } })
    await cluster.until('the claim is bound', async () => (await claim())?.status?.phase === 'Bound')
  },
  async "A pod's volume is attached and mounted"() {
    await cluster.server.post(pods, {
      metadata: { name: 'web' },
      spec: {
        containers: [{ name: 'c', image: 'x', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
      },
    })
    await cluster.until('the pod runs', async () => (await pod())?.status?.phase === 'Running')
  },
  async 'A node restarts'() {
    await cluster.stopAgent()
    cluster.startAgent()
    await cluster.clock.advance(60_000)
    assert.equal((await pod())?.status?.phase, 'Running')
  },
  async 'A pod is deleted'() {
    await cluster.server.delete(`${pods}/web`)
    await cluster.until('the pod is gone', async () => (await pod()) === undefined)
    await cluster.server.delete(`${claims}/data`)
    await cluster.until('the volume is gone', isEmpty)
  },
  async 'Somebody looks into a pod'() {
    assert.deepEqual(await lookedInto.exec('hello'), { output: 'hello', code: 4 })
  },
}

for (const [title, walk] of Object.entries(walks)) {
  test(`"${title}" names the files that do the work`, async () => {
    await coverage.take()
    await walk()
    const ran = await coverage.take()
    for (const file of ran.keys()) ranInAny.add(file)
    const { add, drop } = compare(stories, title, ran, idle)
    const lines = [...add.map((file) => `  add  ${file}`), ...drop.map((file) => `  drop ${file}`)]
    assert.equal(lines.length, 0, `ARCHITECTURE.md, story "${title}":\n${lines.join('\n')}`)
  })
}

test('what all stories share does work in at least one', () => {
  assert.deepEqual(idleLinks(stories.shared, ranInAny), [])
})

async function isEmpty(): Promise<boolean> {
  const { client } = cluster
  const lists = await Promise.all([client.list('VolumeAttachment', {}), client.list('PersistentVolume', {})])
  return lists.every(({ items }) => items.length === 0)
}

async function claim() {
  const { items } = await cluster.client.list('PersistentVolumeClaim', { namespace })
  return items[0]
}

async function pod() {
  const { items } = await cluster.client.list('Pod', { namespace })
  return items[0]
}
