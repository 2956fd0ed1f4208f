// A random but sensible cluster life for the claim controllers: users, administrators, an external provisioner, pods,
// crashes after any single write; and the invariants I-1 … I-9 that must hold throughout.
import assert from 'node:assert/strict'
import { annotations, finalizers } from '../../src/api/annotations.ts'
import { pluginName } from '../../src/api/names.ts'
import { annotation, hasFinalizer, keyOf, refOf } from '../../src/api/meta.ts'
import { compareQuantities } from '../../src/api/quantity.ts'
import type { KindName } from '../../src/api/kinds.ts'
import type { PersistentVolume, PersistentVolumeClaim } from '../../src/api/generated/types.ts'
import type { CallInfo } from '../../src/client/in-process.ts'
import { createBindingController } from '../../src/controllers/binding/controller.ts'
import { createProtectionController } from '../../src/controllers/protection/controller.ts'
import type { ClusterPlugin } from '../../src/volume/plugin.ts'
import { createRegistry } from '../../src/volume/registry.ts'
import type { Registered } from '../../src/volume/registry.ts'
import { createVirtualCluster } from '../kit/virtual-cluster.ts'
import type { VirtualCluster } from '../kit/virtual-cluster.ts'
import { claim, pod, storageClass, volume, withoutServerFields } from '../kit/objects.ts'
import type { Stored } from '../kit/observed-api.ts'

const modelPlugin = pluginName('kubernetes.io/model-disk')
const sizes = ['1Gi', '2Gi', '3Gi', '5Gi'] as const
const classes = ['', 'static', 'disk', 'late', 'external', null] as const
const maximum = { claims: 14, volumes: 18, pods: 6 }

export interface ModelWorld {
  readonly bench: VirtualCluster
  /** One random deed, then everything it causes; possibly with a crash in the middle. */
  step(): Promise<string>
  /** Lets all back-offs pass, then checks what must hold when nothing moves any more. */
  quiet(): Promise<void>
  stop(): Promise<void>
  readonly crashes: number
}

export async function createModelWorld(seed: number): Promise<ModelWorld> {
  const bench = await createVirtualCluster(seed)
  const { server, clock, random } = bench
  const assets = new Set<string>()
  /** Volumes that a user reserved: name → claim name. */
  const reserved = new Map<string, string>()
  const violations: string[] = []
  let crashes = 0
  let writesUntilCrash = Infinity
  let dead = false
  let counter = 0

  const plugin: Registered<ClusterPlugin> = {
    name: modelPlugin,
    traits: { takesMountOptions: false, remountOnPodUpdate: false },
    volumeName: (spec) => spec.name,
    supports: (spec) => spec.source.kind === 'flexVolume',
    plugin: {
      async provision({ claim: wanted, volumeName }) {
        if (random.chance(0.1)) throw new Error('no space left')
        assets.add(volumeName)
        const size = wanted.spec.resources?.requests?.['storage'] ?? '1Gi'
        const modes = wanted.spec.accessModes as ['ReadWriteOnce']
        return withoutServerFields(
          volume({ name: volumeName, size, modes, policy: 'Delete', spec: modelSource(volumeName) }),
        )
      },
      async remove(spec) {
        const live = server.peek('PersistentVolume', spec.name)
        if (live !== undefined) mayDelete(live)
        if (random.chance(0.1)) throw new Error('storage is busy')
        assets.delete(spec.name)
      },
    },
  }
  /** Storage may be deleted only when its claim is gone or another one (I-2). */
  const mayDelete = (doomed: PersistentVolume) => {
    const ref = doomed.spec.claimRef
    const owner = server.peek('PersistentVolumeClaim', `${ref?.namespace}/${ref?.name}`)
    const inUse =
      owner?.metadata.uid === ref?.uid && (!owner?.spec.volumeName || owner.spec.volumeName === doomed.metadata.name)
    if (doomed.spec.persistentVolumeReclaimPolicy !== 'Delete' || inUse)
      violations.push(`the storage of ${doomed.metadata.name} was deleted while it is wanted (I-2)`)
  }
  server.setObserver(({ by, kind, old, next }) => {
    if (by !== 'test') violations.push(...forbiddenChange(bench, reserved, kind, old, next))
  })
  const start = () => {
    dead = false
    const slow = random.chance(0.5)
    const stumble = (call: CallInfo) => {
      if (dead) throw new Error('the controller has crashed')
      if (call.verb === 'get' || call.verb === 'list' || call.verb === 'watch' || call.kind === 'Event') return
      if (--writesUntilCrash > 0) return
      dead = true
      throw new Error('the controller crashes after this write')
    }
    const alive = () => {
      if (dead) throw new Error('the controller has crashed')
    }
    return bench.run(
      (deps) => [
        createBindingController({ ...deps, plugins: createRegistry([plugin]), options: { auditMs: 0 } }),
        createProtectionController(deps),
      ],
      // Some processes hear of changes late: decisions on old caches must end in conflicts, never in damage.
      {
        before: alive,
        after: stumble,
        onWatchEvent: alive,
        delayMs: ({ verb }) => (verb === 'watch' && slow ? 70 : 0),
      },
    )
  }
  let run = start()
  await run.settle()

  const restart = async () => {
    crashes++
    writesUntilCrash = Infinity
    dead = true
    await run.stop()
    run = start()
    await run.settle()
  }
  const user = async <T>(deed: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await deed()
    } catch {
      return undefined // refused by the server: a user's mistake
    }
  }
  const deeds = createDeeds(bench, reserved, user, () => `${counter++}`)
  const check = () => {
    assert.deepEqual(violations, [], `seed ${seed}`)
    oneHolder(bench)
  }

  return {
    bench,
    get crashes() {
      return crashes
    },
    async step() {
      if (random.chance(0.25)) writesUntilCrash = 1 + random.below(6)
      const name = await random.pick(deeds)()
      await clock.settle()
      if (random.chance(0.3)) await clock.advance(600)
      if (dead || random.chance(0.02)) await restart()
      check()
      return name
    },
    async quiet() {
      writesUntilCrash = Infinity
      if (dead) await restart()
      for (let round = 0; round < 12; round++) await clock.advance(150_000)
      check()
      quietInvariants(bench)
      // I-5, I-6: a new process finds nothing to do.
      await run.stop()
      server.writes.length = 0
      run = start()
      await run.settle()
      const writes = server.writes.filter((write) => !write.includes(' Event/'))
      assert.deepEqual(writes, [], `a second full look wrote something (seed ${seed}) (I-5)`)
    },
    stop: () => run.stop(),
  }
}

function modelSource(name: string): Partial<PersistentVolume['spec']> {
  return { flexVolume: { driver: 'model/disk', options: { name } } }
}

type Deed = () => Promise<string>

/** Each deed is one API call of somebody; what it leads to is the controllers' business. */
function createDeeds(
  { server, random }: VirtualCluster,
  reserved: Map<string, string>,
  user: <T>(deed: () => Promise<T>) => Promise<T | undefined>,
  serial: () => string,
): readonly Deed[] {
  const anyClaim = () => random.pick(server.all('PersistentVolumeClaim'))
  const anyVolume = () => random.pick(server.all('PersistentVolume'))
  const makeClaim: Deed = async () => {
    if (server.all('PersistentVolumeClaim').length >= maximum.claims) return 'enough claims'
    const named = random.chance(0.15) && server.all('PersistentVolume').length > 0
    const wish = claim({
      name: `c${random.below(10)}`,
      request: random.pick(sizes),
      className: random.pick(classes),
      modes: random.pick([['ReadWriteOnce'], ['ReadOnlyMany'], ['ReadWriteOnce', 'ReadOnlyMany']] as const),
      ...(named ? { volumeName: anyVolume().metadata.name } : {}),
      ...(random.chance(0.15) ? { spec: { selector: { matchLabels: { colour: 'red' } } } } : {}),
    })
    await user(() => server.create('PersistentVolumeClaim', wish))
    return 'create claim'
  }
  const makeVolume: Deed = async () => {
    if (server.all('PersistentVolume').length >= maximum.volumes) return 'enough volumes'
    const name = `v${serial()}`
    const owner = server.all('PersistentVolumeClaim')[0]
    const claimName = `c${random.below(10)}`
    const isReserved = random.chance(0.2)
    const uid = owner?.metadata.name === claimName && random.chance(0.5) ? { uid: owner.metadata.uid! } : {}
    if (isReserved) reserved.set(name, claimName)
    const wish = volume({
      name,
      size: random.pick(sizes),
      className: random.pick(['', 'static', 'disk', 'late', 'external']),
      modes: random.pick([['ReadWriteOnce'], ['ReadOnlyMany'], ['ReadWriteOnce', 'ReadOnlyMany']] as const),
      policy: random.pick(['Retain', 'Retain', 'Delete'] as const),
      ...(random.chance(0.4) ? { labels: { colour: 'red' } } : {}),
      ...(isReserved ? { claimRef: { name: claimName, ...uid } } : {}),
      spec: modelSource(name),
    })
    await user(() => server.create('PersistentVolume', wish))
    return 'create volume'
  }
  const provisionExternally: Deed = async () => {
    const asked = server
      .all('PersistentVolumeClaim')
      .find((each) => annotation(each, annotations.storageProvisioner) === 'csi.example.com' && !each.spec.volumeName)
    if (asked === undefined) return 'nothing to provision'
    const { name, uid } = asked.metadata
    const wish = volume({
      name: random.chance(0.8) ? `pvc-${uid}` : `twin-${serial()}`,
      size: asked.spec.resources?.requests?.['storage'] ?? '1Gi',
      modes: asked.spec.accessModes as ['ReadWriteOnce'],
      className: 'external',
      policy: random.pick(['Delete', 'Retain'] as const),
      annotations: { [annotations.provisionedBy]: 'csi.example.com' },
      claimRef: { name, uid: uid! },
      spec: { csi: { driver: 'csi.example.com', volumeHandle: `h-${uid}` } },
    })
    await user(() => server.create('PersistentVolume', wish))
    return 'provision externally'
  }
  const deleteClaim: Deed = async () => {
    if (server.all('PersistentVolumeClaim').length === 0) return 'no claim'
    await user(() => server.remove('PersistentVolumeClaim', refOf(anyClaim())))
    return 'delete claim'
  }
  const deleteVolume: Deed = async () => {
    if (server.all('PersistentVolume').length === 0) return 'no volume'
    await user(() => server.remove('PersistentVolume', refOf(anyVolume())))
    return 'delete volume'
  }
  const administer: Deed = async () => {
    const released = server.all('PersistentVolume').find((each) => each.status?.phase === 'Released')
    if (released === undefined) return 'nothing released'
    const { claimRef: _gone, ...spec } = released.spec
    const policy = random.pick(['Retain', 'Delete'] as const)
    const next = random.chance(0.5)
      ? { ...released, spec }
      : { ...released, spec: { ...released.spec, persistentVolumeReclaimPolicy: policy } }
    if (next.spec === spec) reserved.delete(released.metadata.name)
    await user(() => server.update('PersistentVolume', next))
    return 'administer a released volume'
  }
  const makePod: Deed = async () => {
    if (server.all('PersistentVolumeClaim').length === 0 || server.all('Pod').length >= maximum.pods) return 'no pod'
    const { name } = anyClaim().metadata
    const wish = pod(`p${serial()}`, { claims: [name], ...(random.chance(0.7) ? { node: 'n' } : {}) })
    await user(() => server.create('Pod', wish))
    return 'create pod'
  }
  const deletePod: Deed = async () => {
    const [first] = server.all('Pod')
    if (first === undefined) return 'no pod'
    await user(() => server.remove('Pod', refOf(first), { gracePeriodSeconds: 0 }))
    return 'delete pod'
  }
  const changeClasses: Deed = async () => {
    const name = random.pick(['disk', 'late', 'external'])
    const known = server.peek('StorageClass', name)
    if (known !== undefined && random.chance(0.3)) await user(() => server.remove('StorageClass', { name }))
    const isDefault = random.chance(0.3)
    const wishes = {
      disk: { provisioner: modelPlugin as string, isDefault },
      late: { volumeBindingMode: 'WaitForFirstConsumer' as const },
      external: { isDefault },
    }[name]
    if (known === undefined) await user(() => server.create('StorageClass', storageClass(name, wishes ?? {})))
    return 'change classes'
  }
  return [
    ...[makeClaim, makeClaim, makeClaim, makeVolume, makeVolume, makeVolume, provisionExternally, provisionExternally],
    ...[deleteClaim, deleteVolume, administer, makePod, deletePod, changeClasses],
  ]
}

/** What no controller may ever write. */
function forbiddenChange(
  bench: VirtualCluster,
  reserved: ReadonlyMap<string, string>,
  kind: KindName,
  old: Stored | undefined,
  next: Stored | undefined,
): readonly string[] {
  if (kind === 'PersistentVolume')
    return forbiddenVolumeChange(bench, reserved, old as PersistentVolume, next as PersistentVolume)
  if (kind !== 'PersistentVolumeClaim' || old === undefined) return []
  const before = old as unknown as PersistentVolumeClaim
  const released =
    hasFinalizer(before, finalizers.claimProtection) && (!next || !hasFinalizer(next, finalizers.claimProtection))
  const user = bench.server
    .all('Pod')
    .find(
      ({ spec }) =>
        spec?.nodeName && spec.volumes?.some((each) => each.persistentVolumeClaim?.claimName === before.metadata.name),
    )
  return released && user !== undefined
    ? [`${keyOf(before)} lost its protection while ${keyOf(user)} uses it (I-8)`]
    : []
}

function forbiddenVolumeChange(
  { server }: VirtualCluster,
  reserved: ReadonlyMap<string, string>,
  old: PersistentVolume | undefined,
  next: PersistentVolume | undefined,
): readonly string[] {
  if (old === undefined) return []
  const { name } = old.metadata
  const problems: string[] = []
  const lostGuard =
    hasFinalizer(old, finalizers.volumeProtection) && (!next || !hasFinalizer(next, finalizers.volumeProtection))
  if (lostGuard && old.status?.phase === 'Bound') problems.push(`${name} lost its protection while it is bound (I-8)`)
  if (next === undefined) return problems
  const [before, after] = [old.spec.claimRef, next.spec.claimRef]
  if (reserved.has(name) && after?.name !== reserved.get(name))
    problems.push(`the reservation of ${name} for ${reserved.get(name)} was removed (I-3)`)
  if (before && after && before.name !== after.name)
    problems.push(`${name} went from ${before.name} to ${after.name} (I-7)`)
  if (before?.uid && after?.uid && before.uid !== after.uid)
    problems.push(`${name} went from one claim ${before.name} to another of that name, data and all (I-7)`)
  const owner = server.peek('PersistentVolumeClaim', `${after?.namespace}/${after?.name}`)
  const isNewMatch =
    !before && after && owner !== undefined && annotation(owner, annotations.bindCompleted) === undefined
  if (isNewMatch && old.metadata.deletionTimestamp) problems.push(`${name} was chosen while it is being deleted (I-7)`)
  return problems
}

/** I-1, at any moment: whatever is half written, no volume serves two claims that both believe in it. */
function oneHolder({ server }: VirtualCluster): void {
  const volumes = new Map(server.all('PersistentVolume').map((each) => [each.metadata.name, each]))
  const holders = new Map<string, string>()
  for (const each of server.all('PersistentVolumeClaim')) {
    const name = each.spec.volumeName ?? ''
    const agrees = volumes.get(name)?.spec.claimRef?.uid === each.metadata.uid
    if (each.status?.phase !== 'Bound' || !agrees) continue
    assert.equal(holders.get(name), undefined, `${name} serves ${holders.get(name)} and ${keyOf(each)} (I-1)`)
    holders.set(name, keyOf(each))
  }
}

/** What must hold when nothing moves any more. */
function quietInvariants({ server }: VirtualCluster): void {
  const volumes = new Map(server.all('PersistentVolume').map((each) => [each.metadata.name, each]))
  const holders = new Map<string, string>()
  for (const each of server.all('PersistentVolumeClaim')) {
    const key = keyOf(each)
    const partner = volumes.get(each.spec.volumeName ?? '')
    if (each.status?.phase === 'Bound') {
      assert.equal(
        holders.get(partner?.metadata.name ?? ''),
        undefined,
        `two claims are bound to one volume (${key}) (I-1)`,
      )
      holders.set(partner?.metadata.name ?? '', key)
      assert.equal(partner?.spec.claimRef?.uid, each.metadata.uid, `${key} is bound, its volume disagrees (I-1)`)
      assert.equal(partner?.status?.phase, 'Bound', `${key} is bound, its volume says ${partner?.status?.phase}`)
      const fits = compareQuantities(each.status.capacity?.['storage'], partner?.spec.capacity?.['storage']) <= 0
      assert.ok(fits, `${key} shows more than its volume has (I-9)`)
    } else if (annotation(each, annotations.bindCompleted) !== undefined) {
      assert.equal(each.status?.phase, 'Lost', `${key} was bound once and is neither Bound nor Lost`)
    } else assert.equal(couldBind(server, each), undefined, `${key} could bind and does not`)
  }
  for (const each of volumes.values()) {
    const { name } = each.metadata
    if (each.status?.phase === 'Bound') assert.ok(holders.has(name), `${name} is Bound to nobody`)
    // TC-25: a volume that carries the uid of an unbound claim is left to that claim, which may not want it.
    const owner = server.peek('PersistentVolumeClaim', `ns/${each.spec.claimRef?.name}`)
    const isCourting = owner !== undefined && owner.metadata.uid === each.spec.claimRef?.uid && !owner.spec.volumeName
    if (!isCourting) assert.notEqual(each.status?.phase, 'Pending', `${name} was never looked at`)
  }
}

/** By brute force: a free or reserved volume that this unbound claim should have taken. */
function couldBind({ all, peek }: VirtualCluster['server'], wanted: PersistentVolumeClaim): string | undefined {
  const late = peek('StorageClass', wanted.spec.storageClassName ?? '')?.volumeBindingMode === 'WaitForFirstConsumer'
  if (wanted.spec.volumeName || wanted.metadata.deletionTimestamp) return undefined
  return all('PersistentVolume').find((each) => {
    const ref = each.spec.claimRef
    const mine = ref?.name === wanted.metadata.name && (!ref.uid || ref.uid === wanted.metadata.uid)
    const suits =
      !each.metadata.deletionTimestamp &&
      compareQuantities(each.spec.capacity?.['storage'], wanted.spec.resources?.requests?.['storage']) >= 0 &&
      (wanted.spec.accessModes ?? []).every((mode) => each.spec.accessModes?.includes(mode))
    if (!suits || late) return suits && mine
    const red = wanted.spec.selector === undefined || each.metadata.labels?.['colour'] === 'red'
    const free = ref === undefined && each.status?.phase === 'Available' && red
    return mine || (free && (each.spec.storageClassName ?? '') === (wanted.spec.storageClassName ?? ''))
  })?.metadata.name
}
