// Which objects are there before the user makes any? The built-in driver's own: its CSIDriver, the default class.
import { getIfExists } from '../client/get-if-exists.ts'
import type { KindMap, KindName } from '../api/kinds.ts'
import { isAlreadyExists } from '../api/status-error.ts'
import type { Client } from '../client/client.ts'
import { builtInDriver, defaultClassName } from './config.ts'

/** Created when missing. What the user changed stays, except attachRequired, which must fit the number of nodes. */
export async function ensureDefaultObjects(
  client: Client,
  options: { readonly attachRequired: boolean },
): Promise<void> {
  await ensureDriver(client, options.attachRequired)
  await ensure(client, 'StorageClass', {
    metadata: { name: defaultClassName, annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
    provisioner: builtInDriver,
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'WaitForFirstConsumer',
    allowVolumeExpansion: true,
  })
  await ensure(client, 'VolumeSnapshotClass', {
    metadata: { name: defaultClassName, annotations: { 'snapshot.storage.kubernetes.io/is-default-class': 'true' } },
    driver: builtInDriver,
    deletionPolicy: 'Delete',
  })
}

async function ensureDriver(client: Client, attachRequired: boolean): Promise<void> {
  const driver = {
    metadata: { name: builtInDriver },
    spec: {
      attachRequired,
      podInfoOnMount: true,
      storageCapacity: true,
      fsGroupPolicy: 'File',
      volumeLifecycleModes: ['Persistent', 'Ephemeral'],
    },
  } as const
  const known = await getIfExists(client, 'CSIDriver', { name: builtInDriver })
  // attachRequired cannot be changed; another number of nodes than last time may need the other answer.
  if (known && known.spec.attachRequired !== attachRequired) await client.remove('CSIDriver', { name: builtInDriver })
  else if (known) return
  await ensure(client, 'CSIDriver', driver)
}

async function ensure<K extends KindName>(client: Client, kind: K, object: KindMap[K]): Promise<void> {
  await client.create(kind, object).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error
  })
}
