// What is left of a pod and its volume after a fault? One pod lives and dies on a whole cluster; one call that its node makes
// (to the host or to the CSI driver) fails, hangs or is the agent's last; then everything that a user made is deleted.
import type { PersistentVolume, PersistentVolumeClaim, Pod, Volume } from '../../src/api/generated/types.ts'
import type { Client } from '../../src/client/client.ts'
import type { Fault as DriverFault } from '../../src/csi/faults.ts'
import type { DriverHandlers } from '../../src/csi/service.ts'
import { cleanMountPoint } from '../../src/host/clean-mount-point.ts'
import type { Fault as HostFault } from '../../src/host/model/faults.ts'
import type { ModelHost } from '../../src/host/model/model-host.ts'
import type { NodePluginDeps } from '../../src/plugins/shared/deps.ts'
import { changes } from './kill-points.ts'
import { createWholeCluster, nodeRoot } from './whole-cluster.ts'
import type { WholeCluster } from './whole-cluster.ts'
import { podRequest, shortLived } from './objects.ts'
import { hasCode } from '../../src/host/host-error.ts'

export interface LifeCase {
  readonly name: string
  /** The pod's volume; a claim that it names is made by `objects`. */
  volume(life: number): Volume
  readonly raw?: boolean
  /** The claim asks for more once its pod runs. */
  readonly grows?: boolean
  readonly fsGroup?: number
  readonly deps?: Partial<NodePluginDeps>
  readonly flexDirectory?: string
  /** The CSI driver, where the model's own does not do. */
  driver?(handlers: DriverHandlers, host: () => ModelHost): DriverHandlers
  prepare?(host: ModelHost, client: Client): Promise<unknown>
  /** Made before the pod of each life, deleted after it. */
  objects?(life: number): { readonly claim: PersistentVolumeClaim; readonly volume?: PersistentVolume }
}

/** A driver whose targets are made by `mount`, whatever was staged, and taken away whole. */
export const publishingBy =
  (mount: (host: ModelHost['quiet'], at: PublishedAt, signal: AbortSignal) => Promise<void>) =>
  ({ node, ...rest }: DriverHandlers, host: () => ModelHost): DriverHandlers => ({
    ...rest,
    node: {
      ...node,
      async nodePublishVolume({ targetPath, stagingTargetPath }, signal) {
        const { quiet } = host()
        await quiet.files.mkdirAll(targetPath, 0o750, signal)
        if (!(await quiet.mounts.isMountPoint(targetPath, signal)))
          await mount(quiet, { targetPath, stagingTargetPath }, signal)
        return {}
      },
      async nodeUnpublishVolume({ targetPath }, signal) {
        await cleanMountPoint(host().quiet, targetPath, {}, signal)
        return {}
      },
    },
  })

interface PublishedAt {
  readonly targetPath: string
  readonly stagingTargetPath: string
}

export const troubleKinds = [
  'fails',
  /** And so does every further call of its name on its path, until the pod is deleted. */
  'keepsFailing',
  'failsAfter',
  'hangs',
  'hangsAfter',
  'crashes',
  'crashesAfter',
] as const
type TroubleKind = (typeof troubleKinds)[number]

/** Calls to the driver go wrong by their names, while the pod starts and until it is gone. */
interface Answers {
  readonly of: 'answers'
  readonly byForce: boolean
  choose(rpc: string): DriverFault | undefined
}

export type Trouble = Strike | Answers

interface Strike {
  /** Whose call is struck. */
  readonly of: 'host' | 'driver'
  readonly kind: TroubleKind
  /** Which calls count: all, or only those that change something. */
  readonly calls: 'all' | 'changes'
  /** So many calls go well first. */
  readonly after: number
  /** The pod's object is removed at once, whatever its agent says. */
  readonly byForce: boolean
}

/** For so long a host call hangs before its own deadline ends it. */
const hangMs = 120_000

export async function openMatrix(given: LifeCase) {
  const cluster: WholeCluster = await createWholeCluster({
    ...(given.driver ? { change: (handlers) => given.driver!(handlers, () => cluster.host()) } : {}),
    driverSpec: { volumeLifecycleModes: ['Persistent', 'Ephemeral'] },
    ...(given.deps ? { plugins: given.deps } : {}),
    ...(given.flexDirectory ? { flexDirectory: given.flexDirectory } : {}),
  })
  await given.prepare?.(cluster.host(), cluster.client)
  await cluster.clock.advance(5_000)
  const before = new Set(await found(cluster))
  const left = async () => (await found(cluster)).filter((each) => !before.has(each))
  let lives = 0
  const live = (trouble?: Trouble) => oneLife({ ...cluster, left }, given, ++lives, trouble)
  const first = await live()
  return { first, live, stop: () => cluster.stop() }
}

interface Bench extends WholeCluster {
  /** What is there now and was not before the first life. */
  left(): Promise<readonly string[]>
}

/** What is left, and which call was struck. */
async function oneLife(cluster: Bench, given: LifeCase, life: number, trouble: Trouble | undefined) {
  const { client, clock, left } = cluster
  const name = `life-${life}`
  const objects = given.objects?.(life)
  if (objects) await makeClaim(client, objects)
  const struck = trouble ? plant(cluster, trouble) : () => undefined
  await client.create('Pod', podOf(given, life))
  const running = async () => (await phaseOf(client, name)) === 'Running'
  const tries = trouble?.of === 'answers' ? 20 : 700
  await waitFor(cluster, tries, async () => struck() !== undefined || (await running()))
  if (!trouble && !(await running())) return { left: [`the pod is ${await phaseOf(client, name)}`], struck: undefined }
  if (objects && given.grows && struck() === undefined) {
    await grow(client, objects.claim.metadata.name)
    await waitFor(cluster, 700, async () => struck() !== undefined || (await isGrown(client)))
    if (!trouble && !(await isGrown(client))) return { left: ['the claim did not grow'], struck: undefined }
  }
  if (kindOf(trouble) === 'keepsFailing') {
    await clock.advance(20_000)
    noMoreFaults(cluster)
  }
  await remove(client, 'Pod', name, trouble?.byForce === true)
  if (objects) await remove(client, 'PersistentVolumeClaim', objects.claim.metadata.name, false)
  if (objects?.volume) await client.remove('PersistentVolume', { name: objects.volume.metadata.name })
  const died = () => isCrash(trouble) && struck() !== undefined
  const clean = async () => (await left()).length === 0
  await waitFor(cluster, 1_500, async () => died() || (await clean()))
  const call = struck()
  noMoreFaults(cluster)
  if (died()) await cluster.startNode('n1')
  await waitFor(cluster, 1_500, clean)
  return { left: await left(), struck: call }
}

const kindOf = (trouble: Trouble | undefined) => (trouble?.of === 'answers' ? undefined : trouble?.kind)
const isCrash = (trouble: Trouble | undefined) => ['crashes', 'crashesAfter'].includes(kindOf(trouble) ?? '')

function noMoreFaults(cluster: WholeCluster): void {
  cluster.host().faults.clear()
  cluster.setFaults(() => undefined)
}

/** Says later which call was struck. */
function plant(cluster: WholeCluster, trouble: Trouble): () => string | undefined {
  if (trouble.of === 'answers') {
    cluster.setFaults((rpc) => trouble.choose(rpc))
    return () => undefined
  }
  const { of, kind, after, calls: wanted } = trouble
  const kill = kind === 'crashes' || kind === 'crashesAfter' ? () => cluster.killNode('n1') : () => {}
  let struck: string | undefined
  if (of === 'driver') {
    let calls = 0
    cluster.setFaults((rpc) => {
      const again = kind === 'keepsFailing' && rpc === struck
      if (rpc === 'GetCapacity' || (calls++ !== after && !again)) return undefined
      struck = rpc
      kill()
      return driverFaults[kind]
    })
    return () => struck
  }
  const { faults } = cluster.host()
  faults.plant({
    ...hostFaults[kind],
    call: wanted === 'all' ? '*' : changing,
    after,
    times: 1,
    onStrike(call) {
      struck = call
      const [name = '', below = ''] = call.split(' ', 2)
      if (kind === 'keepsFailing') faults.plant({ call: name, below, kind: 'fails' })
      kill()
    },
  })
  return () => struck
}

const changing: ReadonlySet<string> = new Set([
  'run',
  ...Object.entries(changes).flatMap(([part, names]) => names.split(' ').map((name) => `${part}.${name}`)),
])

const hostFaults: Readonly<Record<TroubleKind, Pick<HostFault, 'kind' | 'delayMs'>>> = {
  fails: { kind: 'fails' },
  keepsFailing: { kind: 'fails' },
  failsAfter: { kind: 'failsAfter' },
  hangs: { kind: 'hangs', delayMs: hangMs },
  hangsAfter: { kind: 'hangsAfter', delayMs: hangMs },
  crashes: { kind: 'hangs' },
  crashesAfter: { kind: 'hangsAfter' },
}

const driverFaults: Readonly<Record<TroubleKind, DriverFault>> = {
  fails: { kind: 'refused', status: 'UNAVAILABLE' },
  keepsFailing: { kind: 'refused', status: 'INVALID_ARGUMENT' },
  failsAfter: { kind: 'answerLost', status: 'UNAVAILABLE' },
  hangs: { kind: 'lost' },
  hangsAfter: { kind: 'silent' },
  crashes: { kind: 'lost' },
  crashesAfter: { kind: 'silent' },
}

function podOf({ raw, fsGroup, volume }: LifeCase, life: number): Pod {
  const use = raw
    ? { volumeDevices: [{ name: 'v', devicePath: '/dev/v' }] }
    : { volumeMounts: [{ name: 'v', mountPath: '/v' }] }
  return podRequest(`life-${life}`, {
    ...shortLived,
    containers: [{ name: 'c', image: 'i', command: ['run'], ...use }],
    volumes: [volume(life)],
    ...(fsGroup === undefined ? {} : { securityContext: { fsGroup } }),
  })
}

async function makeClaim(client: Client, { claim, volume }: NonNullable<ReturnType<NonNullable<LifeCase['objects']>>>) {
  await client.create('PersistentVolumeClaim', claim)
  if (volume) await client.create('PersistentVolume', volume)
}

/** Looks often at first, then seldom: back-off makes the node do so, too. */
async function waitFor({ clock }: WholeCluster, seconds: number, holds: () => Promise<boolean>): Promise<void> {
  for (let passed = 0; passed < seconds && !(await holds());) {
    const pause = 1 + Math.floor(passed / 4)
    await clock.advance(pause * 1_000)
    passed += pause
  }
}

const grownSize = '2Gi'
const grow = (client: Client, name: string) =>
  client.patch(
    'PersistentVolumeClaim',
    { namespace: 'default', name },
    { type: 'merge', body: { spec: { resources: { requests: { storage: grownSize } } } } },
  )
const isGrown = async (client: Client) =>
  (await client.list('PersistentVolumeClaim', {})).items.every(
    ({ status }) => status?.capacity?.['storage'] === grownSize,
  )

async function phaseOf(client: Client, name: string): Promise<string | undefined> {
  return (await client.list('Pod', { namespace: 'default' })).items.find(({ metadata }) => metadata.name === name)
    ?.status?.phase
}

async function remove(client: Client, kind: 'Pod' | 'PersistentVolumeClaim', name: string, force: boolean) {
  await client.remove(kind, { namespace: 'default', name }, force ? { gracePeriodSeconds: 0 } : {})
}

/** Everything on the node, in the storage and in the API that a pod's life could leave. */
async function found(cluster: WholeCluster): Promise<readonly string[]> {
  const { client, storage } = cluster
  const host = cluster.host()
  const { files, mounts } = host.quiet
  const named = async (kind: 'Pod' | 'PersistentVolumeClaim' | 'PersistentVolume' | 'VolumeAttachment') =>
    (await client.list(kind, {})).items.map(({ metadata }) => `${kind} ${metadata.name}`)
  const { status } = await client.get('Node', { name: 'n1' })
  const sessions = '/sys/class/iscsi_host'
  const running = [...cluster.containers().containers.values()].filter(({ exit }) => !exit)
  return [
    ...(await named('Pod')),
    ...(await named('PersistentVolumeClaim')),
    ...(await named('PersistentVolume')),
    ...(await named('VolumeAttachment')),
    ...(status?.volumesInUse ?? []).map((name) => `in use: ${name}`),
    ...(status?.volumesAttached ?? []).map(({ name }) => `attached: ${name}`),
    ...(await mounts.list(never)).map(({ mountPoint }) => `mount ${mountPoint}`),
    ...host.loops().map(({ path, backing }) => `${path} of ${backing}`),
    ...(await entriesBelow(host, nodeRoot)).filter((path) => !isLayout(path)),
    ...[...storage.allocated].map((id) => `storage of ${id}`),
    ...((await files.exists(sessions, never)) ? await files.readDir(sessions, never) : []).map(
      (name) => `session ${name}`,
    ),
    ...running.map(({ name }) => `container ${name}`),
  ]
}

const never = new AbortController().signal

/** Below the root, without its name. What goes away while we look is not there. */
async function entriesBelow(host: ModelHost, root: string): Promise<readonly string[]> {
  const { files } = host.quiet
  const visit = async (path: string): Promise<readonly string[]> => {
    try {
      if ((await files.lstat(path, never)).kind !== 'directory') return [path]
      const below = await Promise.all((await files.readDir(path, never)).map((name) => visit(`${path}/${name}`)))
      return [path, ...below.flat()]
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return []
      throw error
    }
  }
  return (await visit(root)).map((path) => path.slice(root.length + 1))
}

/** Directories of the node or of a plugin, not of one volume. */
const isLayout = (path: string) =>
  /^(hawser-devices|plugins(\/[^/]+){0,3}|plugins\/kubernetes\.io\/iscsi\/(volumeDevices\/)?iface-[^/]+|plugins\/kubernetes\.io\/csi\/volumeDevices\/[a-z]+)$/.test(
    path,
  )
