// What does a sensible object of each kind look like? The starting points that the fuzzer spoils.
import type { KindInfo } from '../../src/api/kinds.ts'
import type { JsonMap } from '../../src/apiserver/patch/json.ts'

export function sampleObject(info: KindInfo, name: string, namespace: string | undefined): JsonMap {
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }), labels: { app: 'fuzz' } }
  return { apiVersion: info.apiVersion, kind: info.kind, metadata, ...bodies[info.name] }
}

const claimSpec = {
  accessModes: ['ReadWriteOnce'],
  resources: { requests: { storage: '1Gi' } },
  storageClassName: 'fuzz',
}

/** What makes an object of the kind valid; a kind that is missing here starts from its metadata alone. */
const bodies: Readonly<Partial<Record<KindInfo['name'], JsonMap>>> = {
  Namespace: {},
  Pod: {
    spec: {
      containers: [
        {
          name: 'c',
          image: 'x',
          env: [{ name: 'A', value: 'b' }],
          volumeMounts: [{ name: 'v', mountPath: '/v' }],
          ports: [{ containerPort: 80 }],
        },
      ],
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'a' } }],
    },
  },
  Node: { spec: {}, status: { conditions: [{ type: 'Ready', status: 'True' }] } },
  PersistentVolume: {
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      csi: { driver: 'fuzz.example', volumeHandle: 'h' },
      storageClassName: 'fuzz',
      persistentVolumeReclaimPolicy: 'Retain',
    },
  },
  PersistentVolumeClaim: { spec: claimSpec },
  ConfigMap: { data: { key: 'value' }, binaryData: { bin: 'AAEC' } },
  Secret: { type: 'Opaque', data: { key: 'dmFsdWU=' }, stringData: { plain: 'text' } },
  ServiceAccount: { secrets: [{ name: 's' }] },
  Event: {
    involvedObject: { kind: 'Pod', namespace: 'default', name: 'p' },
    reason: 'Fuzz',
    message: 'm',
    type: 'Normal',
    count: 1,
  },
  EventsEvent: {
    eventTime: '2026-01-01T00:00:00.000000Z',
    reportingController: 'fuzz.example/x',
    reportingInstance: 'i',
    action: 'Fuzz',
    reason: 'Fuzz',
    type: 'Normal',
    regarding: { kind: 'Pod', namespace: 'default', name: 'p' },
    note: 'n',
  },
  Lease: { spec: { holderIdentity: 'me', leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.000000Z' } },
  StorageClass: { provisioner: 'fuzz.example', parameters: { a: 'b' }, reclaimPolicy: 'Delete' },
  VolumeAttachment: { spec: { attacher: 'fuzz.example', nodeName: 'n', source: { persistentVolumeName: 'a' } } },
  CSIDriver: { spec: { attachRequired: false, volumeLifecycleModes: ['Persistent'] } },
  CSINode: { spec: { drivers: [{ name: 'fuzz.example', nodeID: 'n', topologyKeys: ['k'] }] } },
  CSIStorageCapacity: { storageClassName: 'fuzz', capacity: '1Gi' },
  VolumeAttributesClass: { driverName: 'fuzz.example', parameters: { iops: '1' } },
  VolumeSnapshot: { spec: { source: { persistentVolumeClaimName: 'a' } } },
  VolumeSnapshotContent: {
    spec: {
      volumeSnapshotRef: { namespace: 'default', name: 's' },
      deletionPolicy: 'Delete',
      driver: 'fuzz.example',
      source: { snapshotHandle: 'h' },
    },
  },
  VolumeSnapshotClass: { driver: 'fuzz.example', deletionPolicy: 'Delete' },
  Operation: { spec: { actor: 'fuzz', operation: 'mount' }, status: { phase: 'Running' } },
}
