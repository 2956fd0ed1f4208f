// Does `why` name the right cause on a node, in the recorded cases in which a volume cannot be brought to its pod? The same
// manifests as the cases, up to the step that fails, on a real node; and a device that holds another filesystem.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { KindName } from '../../src/api/kinds.ts'
import type { Cause } from '../../src/cli/why/causes.ts'
import type { HttpClient } from '../../src/client/http.ts'
import { createHttpClient } from '../../src/client/http.ts'
import { why } from '../support/assert-why.ts'
import { startServer } from '../support/server-process.ts'

/** Case → pod → cause. */
const expected: Readonly<Record<string, Readonly<Record<string, Cause>>>> = {
  'configmap-missing': { p: 'configMissing' },
  'secret-missing': { p: 'configMissing' },
  'projected-missing': { p: 'configMissing' },
  'projected-token-no-account': { p: 'tokenUnavailable' },
  'csi-claim-not-found': { p: 'claimMissing' },
  'csi-driver-missing': { p: 'driverNotOnNode' },
  'csi-inline-driver-missing': { p: 'driverNotOnNode' },
  'emptydir-hugepages-error': { p: 'volumeSpecInvalid' },
  'flexvolume-no-driver': { p: 'volumesUnresolved' },
  'hostpath-file-missing': { p: 'pathUnfit' },
  'hostpath-file-or-create-no-parent': { p: 'pathUnfit' },
  'hostpath-wrong-type': { 'dir-on-file': 'pathUnfit', 'file-on-dir': 'pathUnfit', 'create-file-on-dir': 'pathUnfit' },
  'local-affinity-mismatch': { p: 'nodeAffinityConflict' },
  'local-path-missing': { p: 'pathUnfit' },
  'nfs-claim-no-tools': { p: 'mountFailed' },
  'pv-hostpath-mount-options': { p: 'mountOptionsRefused' },
  'pv-hostpath-wrong-type': { p: 'pathUnfit' },
  'subpath-escape': { p: 'containerNotStarted' },
}

interface Case {
  readonly steps: readonly { readonly do: readonly Readonly<Record<string, Action>>[] }[]
}
interface Action {
  readonly kind?: KindName
  readonly path?: string
  readonly target?: string
  readonly metadata?: { readonly name: string }
  readonly spec?: Pod
}
interface Pod {
  readonly containers?: readonly object[]
  readonly volumes?: readonly { readonly name: string }[]
}

const skip = process.getuid?.() !== 0 && 'needs root for real mounts'
const node = hostname().toLowerCase()
const patienceMs = 30_000

test('why, in every recorded case in which a volume does not come', { skip, timeout: 300_000 }, async (context) => {
  await using stack = new AsyncDisposableStack()
  const scratch = mkdtempSync(join(tmpdir(), 'hawser-node-why-'))
  stack.defer(() => rmSync(scratch, { recursive: true, force: true }))
  const server = stack.use(await startServer([]))
  const client = stack.use(createHttpClient({ url: server.url, token: server.token, insecureSkipTlsVerify: true }))
  const ask = (ns: string, pod: string) => why({ client, clock: { now: Date.now } }, `pod/${ns}/${pod}`)
  for (const [name, causes] of Object.entries(expected)) {
    await context.test(name, async () => {
      const ns = `w-${name}`
      const text = readFileSync(join(import.meta.dirname, 'suite/cases', `${name}.json`), 'utf8')
        .replaceAll('${ns}', ns)
        .replaceAll('${tmp}', join(scratch, name))
        .replaceAll('${node}', node)
      mkdirSync(join(scratch, name))
      await client.create('Namespace', { metadata: { name: ns } })
      const [first] = (JSON.parse(text) as Case).steps
      for (const action of first?.do ?? []) await play(client, ns, action)
      await until(() => saysOf(ask, ns, causes), causes)
      await removePods(client, ns)
    })
  }

  await context.test('a device that holds another filesystem than the volume asks for', async () => {
    await using loop = loopDevice(join(scratch, 'image'))
    await client.create('Namespace', { metadata: { name: 'w-disk' } })
    await client.create('PersistentVolume', {
      metadata: { name: 'w-disk' },
      spec: {
        capacity: { storage: '32Mi' },
        accessModes: ['ReadWriteOnce'],
        storageClassName: '',
        persistentVolumeReclaimPolicy: 'Retain',
        claimRef: { namespace: 'w-disk', name: 'c' },
        local: { path: loop.device, fsType: 'xfs' },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In' as const, values: [node] }] },
            ],
          },
        },
      },
    })
    const requests = { resources: { requests: { storage: '32Mi' } } }
    await client.create('PersistentVolumeClaim', {
      metadata: { name: 'c', namespace: 'w-disk' },
      spec: { accessModes: ['ReadWriteOnce'], storageClassName: '', volumeName: 'w-disk', ...requests },
    })
    const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }]
    await play(client, 'w-disk', { create: { kind: 'Pod', metadata: { name: 'p' }, spec: { volumes } } })
    await until(() => saysOf(ask, 'w-disk', { p: 'wrongFilesystem' }), { p: 'wrongFilesystem' })
    await removePods(client, 'w-disk')
  })
})

/** One action of a case: an object, or something on the host. */
async function play(client: HttpClient, namespace: string, action: Readonly<Record<string, Action>>): Promise<void> {
  const { create, mkdir, file, symlink } = action
  if (mkdir?.path) mkdirSync(mkdir.path, { recursive: true })
  if (file?.path) writeFileSync(file.path, 'content')
  if (symlink?.path) symlinkSync(symlink.target ?? '', symlink.path)
  if (!create?.kind) return
  const object = { ...create, metadata: { ...create.metadata, namespace } }
  const spec = create.kind === 'Pod' ? podSpec(create.spec ?? {}) : create.spec
  await client.create(create.kind, { ...object, ...(spec ? { spec } : {}) } as never) // as the case has it
}

/** As the runner fills it in: on this node, one container that mounts everything, unless the case says otherwise. */
function podSpec(spec: Pod): object {
  const volumeMounts = (spec.volumes ?? []).map(({ name }) => ({ name, mountPath: `/${name}` }))
  const given = spec.containers ?? [{ name: 'c', volumeMounts }]
  const containers = given.map((each) => ({ image: 'none', command: ['sleep', '600'], ...each }))
  return { nodeName: node, terminationGracePeriodSeconds: 0, ...spec, containers }
}

type Ask = (namespace: string, pod: string) => ReturnType<typeof why>

async function saysOf(ask: Ask, namespace: string, causes: Readonly<Record<string, Cause>>): Promise<object> {
  const told = await Promise.all(
    Object.keys(causes).map(async (pod) => [pod, (await ask(namespace, pod)).blocked?.cause] as const),
  )
  return Object.fromEntries(told)
}

/** The node needs a moment for its first try, and the history for its first words. */
async function until(look: () => Promise<object>, wanted: object): Promise<void> {
  const end = Date.now() + patienceMs
  let found = await look()
  while (JSON.stringify(found) !== JSON.stringify(wanted) && Date.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, 200))
    found = await look()
  }
  assert.deepEqual(found, wanted)
}

async function removePods(client: HttpClient, namespace: string): Promise<void> {
  for (const { metadata } of (await client.list('Pod', { namespace })).items)
    await client.remove('Pod', { namespace, name: metadata.name ?? '' }, { gracePeriodSeconds: 0 })
  const end = Date.now() + patienceMs
  while ((await client.list('Pod', { namespace })).items.length > 0 && Date.now() < end)
    await new Promise((resolve) => setTimeout(resolve, 100))
}

/** A disk with ext4 on it. */
function loopDevice(file: string): AsyncDisposable & { readonly device: string } {
  writeFileSync(file, '')
  truncateSync(file, 32 << 20)
  assert.equal(spawnSync('mkfs.ext4', ['-q', '-F', file]).status, 0)
  const device = spawnSync('losetup', ['--find', '--show', file], { encoding: 'utf8' }).stdout.trim()
  return { device, [Symbol.asyncDispose]: async () => void spawnSync('losetup', ['-d', device]) }
}
