// Does kubectl believe us? One transcript of everyday commands, played with every kubectl at hand: HAWSER_KUBECTL
// (paths separated by colons), else the one in PATH. Without any the test is skipped. Played on memory and on etcd.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { createAuthority, createServerCertificate } from '../../src/apiserver/access/certificates.ts'
import { startApiServer } from '../../src/apiserver/http/listen.ts'
import type { StartedApiServer } from '../../src/apiserver/http/listen.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createRegistryLayout } from '../../src/apiserver/objects/registry-layout.ts'
import { createMemoryStore } from '../../src/store/memory-store.ts'
import type { Store } from '../../src/store/store.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { startEtcd } from '../kit/etcd.ts'
import { openTestStore } from '../kit/etcd-store.ts'
import { kubectlBinaries } from '../kit/kubectl.ts'

const binaries = kubectlBinaries()

for (const binary of binaries) {
  test(`kubectl transcript: ${binary}`, { timeout: 180_000 }, async (context) => {
    await playAll(binary, createMemoryStore(), context)
  })

  test(`kubectl transcript on etcd: ${binary}`, { timeout: 180_000 }, async (context) => {
    await using etcd = await startEtcd()
    await playAll(binary, await openTestStore(etcd.urls, '/registry', { layout: createRegistryLayout() }), context)
  })
}
if (binaries.length === 0) test('kubectl transcript', { skip: 'no kubectl at hand' }, () => {})

async function playAll(binary: string, store: Store, context: TestContext): Promise<void> {
  await using session = await open(binary, store)
  const version = await session.minor()
  for (const [name, part] of Object.entries(parts)) await context.test(name, () => part(session, version))
}

interface Session extends AsyncDisposable {
  readonly server: StartedApiServer
  /** Runs a command that must succeed. */
  run(...words: string[]): Promise<string>
  /** Runs a command that must fail; answers what it said. */
  refused(...words: string[]): Promise<string>
  /** Writes a manifest and answers its path. */
  file(name: string, ...documents: readonly object[]): string
  start(...words: string[]): { readonly output: () => string; stop(): void }
  minor(): Promise<number>
}

type Part = (session: Session, minor: number) => Promise<void>

const claim = (name: string, storage = '1Gi') => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } }, storageClassName: 'fast' },
})
const volume = (name: string, labels: Record<string, string> = {}) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name, labels },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    csi: { driver: 'd.example', volumeHandle: name },
  },
})
const storageClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'fast' },
  provisioner: 'd.example',
}
const configMap = (data: Record<string, string>) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'settings' },
  data,
})
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web' },
  spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'x' }] },
}
const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } }
const lease = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'n1', namespace: 'kube-node-lease' },
  spec: { holderIdentity: 'n1' },
}

const parts: Readonly<Record<string, Part>> = {
  async 'create, get and -o wide'(kubectl) {
    const text = await kubectl.run(
      'create',
      '-f',
      kubectl.file('all', storageClass, claim('c1'), volume('v1'), node, pod, lease),
    )
    assert.match(text, /persistentvolumeclaim\/c1 created/)
    assert.match(await kubectl.run('get', 'pv'), /NAME\s+CAPACITY\s+ACCESS MODES\s+RECLAIM POLICY\s+STATUS\s+CLAIM/)
    assert.match(await kubectl.run('get', 'pvc', '-o', 'wide'), /c1\s+Pending\s+fast.*Filesystem/)
    assert.match(await kubectl.run('get', 'sc,nodes,pods,leases', '-A'), /storageclass.storage.k8s.io\/fast/)
    assert.match(await kubectl.run('get', 'pvc', 'c1', '-o', 'yaml'), /storageClassName: fast/)
    assert.equal(await kubectl.run('get', 'pv', '-o', 'name'), 'persistentvolume/v1\n')
    assert.match(await kubectl.run('get', 'pv', '--sort-by', '.metadata.name'), /v1/)
    assert.match(await kubectl.refused('create', '-f', kubectl.file('again', volume('v1'))), /AlreadyExists/)
  },
  async 'describe and events'(kubectl) {
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'c1.1', namespace: 'default' },
      involvedObject: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'default', name: 'c1' },
      reason: 'Tested',
      message: 'hello there',
      type: 'Normal',
    }
    await kubectl.run('create', '-f', kubectl.file('event', event))
    assert.match(await kubectl.run('describe', 'pvc', 'c1'), /StorageClass:\s+fast/)
    assert.match(await kubectl.run('describe', 'pv', 'v1'), /VolumeHandle:\s+v1/)
    assert.match(await kubectl.run('describe', 'node', 'n1'), /Name:\s+n1/)
    assert.match(await kubectl.run('describe', 'pod', 'web'), /Node:\s+n1/)
    assert.match(await kubectl.run('get', 'events'), /Tested\s+persistentvolumeclaim\/c1\s+hello there/)
  },
  async 'debug: a container beside those of a pod'(kubectl, minor) {
    if (minor < 25) return // it asked another way before
    const words = ['--image=x', '--container=look', '--target=c', '--', 'sh', '-c', 'true']
    await kubectl.run('debug', 'web', ...words)
    assert.match(await kubectl.run('describe', 'pod', 'web'), /Ephemeral Containers:\s+look:/)
  },
  async 'apply twice with a change, then on the server with a conflict'(kubectl) {
    assert.match(await kubectl.run('apply', '-f', kubectl.file('cm', configMap({ a: '1' }))), /created/)
    assert.match(await kubectl.run('apply', '-f', kubectl.file('cm', configMap({ a: '1' }))), /unchanged/)
    assert.match(await kubectl.run('apply', '-f', kubectl.file('cm', configMap({ a: '2' }))), /configured/)
    const mine = { ...configMap({ a: 'x' }), metadata: { name: 'shared' } }
    await kubectl.run('apply', '--server-side', '--field-manager=one', '-f', kubectl.file('ssa', mine))
    const theirs = kubectl.file('ssa2', { ...mine, data: { a: 'y' } })
    assert.match(
      await kubectl.refused('apply', '--server-side', '--field-manager=two', '-f', theirs),
      /conflict with "one".*\.data\.a/s,
    )
    await kubectl.run('apply', '--server-side', '--field-manager=two', '--force-conflicts', '-f', theirs)
    assert.equal(await kubectl.run('get', 'cm', 'shared', '-o', 'jsonpath={.data.a}'), 'y')
  },
  async 'an apply keeps the protection finalizer'(kubectl) {
    await kubectl.run('apply', '-f', kubectl.file('v2', volume('v2')))
    await kubectl.run('apply', '--server-side', '--force-conflicts', '-f', kubectl.file('v2', volume('v2')))
    assert.match(await kubectl.run('get', 'pv', 'v2', '-o', 'jsonpath={.metadata.finalizers}'), /pv-protection/)
  },
  async 'patches of all three kinds, label, annotate, replace'(kubectl, minor) {
    await kubectl.run('patch', 'pv', 'v1', '--type=merge', '-p', '{"metadata":{"labels":{"a":"1"}}}')
    await kubectl.run(
      'patch',
      'pv',
      'v1',
      '--type=json',
      '-p',
      '[{"op":"add","path":"/metadata/labels/b","value":"2"}]',
    )
    await kubectl.run('patch', 'pv', 'v1', '-p', '{"metadata":{"labels":{"c":"3"}}}')
    await kubectl.run('label', 'pv', 'v1', 'd=4', 'a-')
    await kubectl.run('annotate', 'pv', 'v1', 'note=yes')
    const labels = await kubectl.run('get', 'pv', 'v1', '-o', 'jsonpath={.metadata.labels}')
    assert.deepEqual(JSON.parse(labels), { b: '2', c: '3', d: '4' })
    assert.match(await kubectl.run('get', 'pv', '-l', 'b=2,!a'), /v1/)
    await kubectl.run('replace', '-f', kubectl.file('replace', configMap({ a: '3' })))
    assert.equal(await kubectl.run('get', 'cm', 'settings', '-o', 'jsonpath={.data}'), '{"a":"3"}')
    assert.match(
      await kubectl.refused('patch', 'pv', 'v1', '-p', '{"spec":{"volumeMode":"Block"}}'),
      /immutable|Forbidden|Invalid/i,
    )
    if (minor >= 24)
      await kubectl.run(
        'patch',
        'pv',
        'v1',
        '--subresource=status',
        '--type=merge',
        '-p',
        '{"status":{"phase":"Available"}}',
      )
  },
  async 'typed creates, dry runs and diffs'(kubectl, minor) {
    await kubectl.run('create', 'configmap', 'typed', '--from-literal=a=b')
    await kubectl.run('create', 'secret', 'generic', 'hidden', '--from-literal=password=x')
    await kubectl.run('create', 'namespace', 'other')
    assert.match(await kubectl.run('get', 'secrets'), /hidden\s+Opaque\s+1/)
    if (minor >= 18) await kubectl.run('create', 'configmap', 'ghost', '--from-literal=a=b', '--dry-run=server')
    assert.match(await kubectl.refused('get', 'cm', 'ghost'), /NotFound/)
    await kubectl.run('run', 'runner', '--image=x', '--restart=Never')
    assert.match(await kubectl.refused('diff', '-f', kubectl.file('diff', configMap({ a: '9' }))), /a: "9"/)
  },
  async 'watch, wait and delete with finalizers'(kubectl) {
    const watch = kubectl.start('get', 'cm', '-w')
    await eventually(() => /settings/.test(watch.output()))
    await kubectl.run('create', 'configmap', 'seen', '--from-literal=a=b')
    await eventually(() => /seen\s+1/.test(watch.output()))
    watch.stop()
    const waiting = kubectl.run('wait', '--for=condition=Ready', 'node/n1', '--timeout=20s')
    await kubectl.server
      .api()
      .patch(
        'Node',
        { name: 'n1' },
        { type: 'merge', body: { status: { conditions: [{ type: 'Ready', status: 'True' }] } } },
        { subresource: 'status' },
      )
    assert.match(await waiting, /node\/n1 condition met/)
    const deleting = kubectl.run('delete', 'pv', 'v1')
    await eventually(async () => (await kubectl.run('get', 'pv', 'v1')).includes('Terminating'))
    const gone = kubectl.run('wait', '--for=delete', 'pv/v1', '--timeout=20s')
    await kubectl.run('patch', 'pv', 'v1', '-p', '{"metadata":{"finalizers":null}}')
    assert.match(await deleting, /"v1" deleted/)
    await gone
    await kubectl.run('delete', 'pod', 'web', '--grace-period=0', '--force')
    await kubectl.run('delete', 'namespace', 'other')
    assert.match(await kubectl.refused('get', 'ns', 'other'), /NotFound/)
  },
  async 'explain, api-resources, auth, raw'(kubectl, minor) {
    assert.match(await kubectl.run('explain', 'pv.spec.csi'), /driver/)
    assert.match(await kubectl.run('api-resources'), /persistentvolumeclaims\s+pvc/)
    // It looks for services of the cluster, and fails without the kind.
    assert.match(await kubectl.run('cluster-info'), /control plane/i)
    assert.match(await kubectl.run('api-versions'), /storage.k8s.io\/v1/)
    assert.equal(await kubectl.run('auth', 'can-i', 'create', 'pods'), 'yes\n')
    assert.match(await kubectl.run('auth', 'can-i', '--list'), /\*\.\*/)
    if (minor >= 28) assert.match(await kubectl.run('auth', 'whoami'), /admin/)
    if (minor >= 28) assert.match(await kubectl.run('auth', 'whoami', '--as=bob', '--as-group=dev'), /bob[^]*dev/)
    assert.equal(await kubectl.run('auth', 'can-i', 'get', 'pods', '--as=bob', '--as-group=hawser:read-only'), 'yes\n')
    assert.equal(await kubectl.run('get', '--raw', '/readyz'), 'ok')
    if (minor < 99) assert.match(await kubectl.run('version'), /v1\.35/)
    if (minor >= 26) assert.match(await kubectl.run('events', '--for', 'pvc/c1'), /Tested/)
  },
  async 'pages through 1,200 objects'(kubectl) {
    const api = kubectl.server.api()
    for (let index = 0; index < 1_200; index++) {
      await api.create('PersistentVolume', volume(`page-${String(index).padStart(4, '0')}`, { page: 'yes' }) as never)
    }
    const names = await kubectl.run('get', 'pv', '-l', 'page=yes', '--chunk-size=500', '-o', 'name')
    assert.equal(names.trim().split('\n').length, 1_200)
    assert.equal((await kubectl.run('get', 'pv', '-l', 'page=yes', '--no-headers')).trim().split('\n').length, 1_200)
  },
}

async function open(binary: string, store: Store): Promise<Session> {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-kubectl-'))
  const now = Date.now()
  const authority = await createAuthority()
  const tls = await createServerCertificate(authority, { names: ['localhost', '127.0.0.1'] }, now)
  const token = randomBytes(16).toString('hex')
  const server = await startApiServer({
    store,
    clock: createSystemClock(),
    random: createRandom(randomBytes(16)),
    log: silentLog,
    tokens: [{ token, user: { name: 'admin', groups: ['system:masters'] } }],
    signingKey: randomBytes(32),
    listen: { host: '127.0.0.1', port: 0 },
    tls: { certificate: tls.certificate, key: tls.key, authority: authority.certificate },
  })
  const kubeconfig = join(directory, 'kubeconfig')
  const cluster = {
    server: server.url,
    'certificate-authority-data': Buffer.from(authority.certificate).toString('base64'),
  }
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'c', cluster }],
      users: [{ name: 'u', user: { token } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    }),
  )
  const env = { ...process.env, KUBECONFIG: kubeconfig, HOME: directory, KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false' }
  const play = (words: readonly string[]): Promise<{ code: number; text: string; all: string }> =>
    new Promise((resolve) => {
      execFile(binary, words, { env, timeout: 60_000, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1
        resolve({ code, text: stdout, all: stdout + stderr })
      })
    })
  return {
    server,
    async run(...words) {
      const { code, text, all } = await play(words)
      assert.equal(code, 0, `kubectl ${words.join(' ')}:\n${all}`)
      return text
    },
    async refused(...words) {
      const { code, all } = await play(words)
      assert.notEqual(code, 0, `kubectl ${words.join(' ')} was not refused:\n${all}`)
      return all
    },
    file(name, ...documents) {
      const path = join(directory, `${name}.yaml`)
      const [only, ...more] = documents
      writeFileSync(
        path,
        JSON.stringify(more.length === 0 ? only : { apiVersion: 'v1', kind: 'List', items: documents }),
      )
      return path
    },
    start(...words) {
      const child = spawn(binary, words, { env, stdio: ['ignore', 'pipe', 'ignore'] })
      let text = ''
      child.stdout.setEncoding('utf8').on('data', (piece: string) => (text += piece))
      return { output: () => text, stop: () => child.kill() }
    },
    async minor() {
      const { text } = await play(['version', '--client', '-o', 'json'])
      const found = (JSON.parse(text) as { clientVersion: { minor?: string } }).clientVersion.minor ?? ''
      // A kubectl built from its library says no version; it is a current one.
      return Number.parseInt(found, 10) || 99
    },
    async [Symbol.asyncDispose]() {
      await server.close()
      await store[Symbol.asyncDispose]()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

async function eventually(check: () => boolean | Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    if (await check()) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert.fail('it did not happen within ten seconds')
}
