// How does one of our own plugins make a volume for a claim (PRV-8 … PRV-14)? Outside the key loop, under the claim's
// uid, with back-off; the claim carries the provisioner's name before anything is made, so nothing can be lost unseen.
import { annotations, finalizers } from '../../api/annotations.ts'
import { isAlreadyExists, isNotFound } from '../../api/status-error.ts'
import { annotation, keyOf, withAnnotations } from '../../api/meta.ts'
import { pluginName } from '../../api/names.ts'
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import { getIfExists } from '../../client/get-if-exists.ts'
import type { FreshCache } from '../../client/fresh-cache.ts'
import type { Clock } from '../../clock/clock.ts'
import { errorText } from '../../telemetry/error-text.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registered, Registry } from '../../volume/registry.ts'
import { specOfPersistentVolume } from '../../volume/spec.ts'
import type { Writer } from './writer.ts'
import { provisioningFailed } from './claim-plan.ts'
import { classOf } from '../../api/storage-class.ts'
import type { BindingMetrics } from './metrics.ts'
import { claimMigration } from '../shared/migration.ts'
import type { EventThrottle } from '../shared/event-throttle.ts'
import { claimAskedFor } from '../shared/writes.ts'

export interface ProvisionDeps {
  readonly client: Client
  readonly clock: Clock
  readonly plugins: Registry<ClusterPlugin>
  readonly volumes: FreshCache<PersistentVolume>
  readonly writer: Writer
  readonly events: EventThrottle
  readonly metrics: BindingMetrics
  readonly options: { readonly hostPathProvisioner?: boolean }
}

export interface ProvisionRequest {
  readonly claim: PersistentVolumeClaim
  readonly storageClass: StorageClass
  readonly plugin: string
}

const attempts = 5
const pauseMs = 10_000

/** PRV-4: both annotations and what migration wants of them, in one write. */
export async function askFor(
  writer: Writer,
  events: EventThrottle,
  claim: PersistentVolumeClaim,
  provisioner: string,
  signal: AbortSignal,
): Promise<PersistentVolumeClaim> {
  const asked = claimAskedFor(claim, provisioner)
  if (asked === claim) return claim
  try {
    return await writer.putClaim(claim, claimMigration(asked), { what: `ask ${provisioner}` }, signal)
  } catch (error) {
    if (!signal.aborted)
      events.record('PersistentVolumeClaim', claim, provisioningFailed(`Error saving claim: ${errorText(error)}`))
    throw error
  }
}

export async function provision(deps: ProvisionDeps, request: ProvisionRequest, signal: AbortSignal): Promise<void> {
  const { client, events, metrics, volumes } = deps
  const { storageClass, plugin: name } = request
  const fail = (claim: PersistentVolumeClaim, message: string, cause?: unknown): never => {
    metrics.failed('provision', name)
    events.record('PersistentVolumeClaim', claim, provisioningFailed(message))
    throw new Error(message, { cause })
  }
  if (request.claim.spec.dataSource !== undefined)
    fail(request.claim, `plugin "${name}" is not a CSI plugin. Only CSI plugin can provision a claim with a datasource`)
  metrics.provisionStarted(request.claim, name)
  const claim = await askFor(deps.writer, events, request.claim, name, signal)
  const volumeName = `pvc-${claim.metadata.uid}`
  const existing = await getIfExists(client, 'PersistentVolume', { name: volumeName }, signal)
  // An earlier try has made it (PRV-9).
  if (existing !== undefined) return void volumes.wrote(existing)
  const registered = deps.plugins.byName(pluginName(name))
  const options = storageClass.mountOptions ?? []
  if (options.length > 0 && !registered.traits.takesMountOptions)
    fail(
      claim,
      `Mount options are not supported by the provisioner but StorageClass "${storageClass.metadata.name}" has mount options [${options.join(' ')}]`,
    )
  // CTL-10: it makes directories on the machine of the control plane, so it must be asked for.
  if (name === 'kubernetes.io/host-path' && deps.options.hostPathProvisioner !== true)
    fail(claim, `Failed to create provisioner: provisioning in volume plugin "${name}" is disabled`)
  const selectedNode = annotation(claim, annotations.selectedNode)
  if (selectedNode) await nodeMustExist(deps, claim, selectedNode, fail, signal)
  let volume: PersistentVolume
  try {
    const { provision: make } = registered.plugin
    if (make === undefined) throw new Error(`plugin ${name} does not provision volumes`)
    const wish = { claim, storageClass, volumeName, ...(selectedNode ? { selectedNode } : {}) }
    volume = volumeObject(await make(wish, signal), claim, storageClass, volumeName, name)
  } catch (error) {
    if (signal.aborted) throw error
    await chooseNodeAgain(deps, claim, signal)
    return fail(
      claim,
      `Failed to provision volume with StorageClass "${storageClass.metadata.name}": ${errorText(error)}`,
      error,
    )
  }
  await save(deps, claim, volume, registered, signal)
}

/** What the plugin made, as the claim's PersistentVolume (PRV-12). */
function volumeObject(
  made: PersistentVolume,
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
  volumeName: string,
  plugin: string,
): PersistentVolume {
  const { name, namespace, uid, resourceVersion } = claim.metadata
  const policy = made.spec.persistentVolumeReclaimPolicy ?? storageClass.reclaimPolicy ?? 'Delete'
  const named = made.metadata.name || volumeName
  const before = made.metadata.finalizers ?? []
  return withAnnotations(
    {
      ...made,
      metadata: {
        ...made.metadata,
        name: named,
        ...(policy === 'Delete' ? { finalizers: [...before, finalizers.volumeController] } : {}),
      },
      spec: {
        ...made.spec,
        persistentVolumeReclaimPolicy: policy,
        storageClassName: classOf(claim),
        claimRef: {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          name,
          ...(namespace === undefined ? {} : { namespace }),
          ...(uid === undefined ? {} : { uid }),
          ...(resourceVersion === undefined ? {} : { resourceVersion }),
        },
      },
    },
    { [annotations.boundByController]: 'yes', [annotations.provisionedBy]: plugin },
  )
}

/** PRV-13, PRV-14: saved, or the storage is deleted again; what can be neither is said aloud. */
async function save(
  deps: ProvisionDeps,
  claim: PersistentVolumeClaim,
  volume: PersistentVolume,
  registered: Registered<ClusterPlugin>,
  signal: AbortSignal,
): Promise<void> {
  const { client, clock, events, volumes } = deps
  const key = keyOf(claim)
  const { name } = volume.metadata
  let failure: Error
  try {
    await several(clock, signal, async () => {
      try {
        volumes.wrote(await client.create('PersistentVolume', volume, {}, signal))
      } catch (error) {
        if (!isAlreadyExists(error)) throw error
      }
    })
    const message = `Successfully provisioned volume ${name} using ${registered.name}`
    events.record('PersistentVolumeClaim', claim, { type: 'Normal', reason: 'ProvisioningSucceeded', message })
    return
  } catch (error) {
    if (signal.aborted) throw error
    const message = `Error creating provisioned PV object for claim ${key}: ${errorText(error)}. Deleting the volume.`
    failure = new Error(message, { cause: error })
    events.record('PersistentVolumeClaim', claim, provisioningFailed(message))
  }
  try {
    const { remove } = registered.plugin
    if (remove === undefined) throw new Error(`plugin ${registered.name} does not delete volumes`)
    await several(clock, signal, () => remove(specOfPersistentVolume(volume, false), signal))
  } catch (error) {
    if (signal.aborted) throw error
    const message = `Error cleaning provisioned volume for claim ${key}: ${errorText(error)}. Please delete manually.`
    events.record('PersistentVolumeClaim', claim, { type: 'Warning', reason: 'ProvisioningCleanupFailed', message })
  }
  throw failure // the claim has no volume: tried again with back-off, and `why` can say so
}

async function several(clock: Clock, signal: AbortSignal, attempt: () => Promise<void>): Promise<void> {
  for (let count = 1; ; count++) {
    try {
      return await attempt()
    } catch (error) {
      if (count === attempts || signal.aborted) throw error
      await clock.sleep(pauseMs, signal)
    }
  }
}

/** PRV-10; WC-9: a node that is gone will not come back by waiting, so the placement may choose again. */
async function nodeMustExist(
  deps: ProvisionDeps,
  claim: PersistentVolumeClaim,
  name: string,
  fail: (claim: PersistentVolumeClaim, message: string, cause?: unknown) => never,
  signal: AbortSignal,
): Promise<void> {
  try {
    await deps.client.get('Node', { name }, signal)
  } catch (error) {
    if (!isNotFound(error)) throw error
    await chooseNodeAgain(deps, claim, signal)
    fail(claim, `Failed to get target node: ${errorText(error)}`, error)
  }
}

/** PRV-11: taking the selected node away tells the placement to choose again. Best effort. */
async function chooseNodeAgain(deps: ProvisionDeps, claim: PersistentVolumeClaim, signal: AbortSignal): Promise<void> {
  if (annotation(claim, annotations.selectedNode) === undefined) return
  const write = { what: 'choose the node again' }
  try {
    await deps.writer.putClaim(claim, withAnnotations(claim, { [annotations.selectedNode]: undefined }), write, signal)
  } catch (error) {
    if (signal.aborted) throw error
  }
}
