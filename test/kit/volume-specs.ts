// Builders of persistent volumes and their specs for plugin tests.

import type { PersistentVolume } from '../../src/api/generated/types.ts'
import { specOfPersistentVolume } from '../../src/volume/spec.ts'
import type { VolumeSpec } from '../../src/volume/spec.ts'

export interface PersistentFacts {
  readonly name?: string
  readonly readOnly?: boolean
  readonly mode?: 'Filesystem' | 'Block'
  readonly mountOptions?: readonly string[]
}

export function persistent(
  source: Partial<NonNullable<PersistentVolume['spec']>>,
  facts: PersistentFacts = {},
): VolumeSpec {
  const volume: PersistentVolume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: facts.name ?? 'pv' },
    spec: {
      volumeMode: facts.mode ?? 'Filesystem',
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      ...(facts.mountOptions === undefined ? {} : { mountOptions: facts.mountOptions }),
      ...source,
    },
  }
  return specOfPersistentVolume(volume, facts.readOnly ?? false)
}
