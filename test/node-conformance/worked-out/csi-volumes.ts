// CSI volumes beside the recorded cases: read-only, groups, inline and generic ephemeral ones, growth in use, raw devices,
// secrets and claims that are missing. Worked out from CSI-*, EXN-*, KP-6, MNT-5, BLOCK-*.
import type { Case } from './pictures.ts'
import { attachedFor, csiClaim, csiDevice, csiInline, define, mappedEvents, pod, staged, together } from './pictures.ts'
import { bound, claim, create, event, grow, ofClaim, podWith, running, secret } from './objects.ts'

const needs = ['csi'] as const
const one = { pods: ['p'], needs }
const readOnlyNews = (name: string, claimName: string) =>
  [`PersistentVolumeClaim/${claimName}`, `Pod/${name}`].map(
    (object) =>
      `${object} Warning FileSystemResizeFailed: MountVolume.NodeExpandVolume failed for volume "<pv:${claimName}>" requested read-only file system`,
  )
const grown = (name: string, claimName: string) =>
  [`PersistentVolumeClaim/${claimName}`, `Pod/${name}`].map(
    (object) =>
      `${object} Normal FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume "<pv:${claimName}>" <node>`,
  )
const mapped = (name: string, claimName: string) =>
  mappedEvents(name, `<pv:${claimName}>`, `kubernetes.io/csi/volumeDevices/<pv:${claimName}>/dev`, 'kubernetes.io~csi')
const notReady = (name: string, volume: string, why: string) =>
  `Pod/${name} Warning FailedMount: Unable to attach or mount volumes: unmounted volumes=[${volume}], unattached volumes=[], failed to process volumes=[${volume}]: ${why}`

export const csiVolumes: readonly Case[] = [
  define(
    'csi-readonly',
    'one pod reads, the other writes; the node says that it cannot grow for the first (PLUG-13, CSI-35, EXN-2).',
    { pods: ['p', 'q'], needs },
    [
      {
        name: 'mounted',
        do: [
          claim('c'),
          bound('c'),
          podWith('p', [ofClaim('v', 'c', { readOnly: true })]),
          { await: { node: { attached: 1 } } },
          podWith('q', [ofClaim('v', 'c')]),
        ],
        wait: running('p', 'q'),
        expect: together(pod('p', csiClaim('c', { options: 'ro' })), pod('q', csiClaim('c')), staged('c'), {
          events: [attachedFor('p', '<pv:c>'), ...readOnlyNews('p', 'c')],
        }),
      },
    ],
  ),
  define(
    'csi-block-readonly',
    'a device that a pod may only read is mapped and held as any other (BLOCK-2, EXN-2).',
    { ...one, block: ['b'], left: { loops: ['loop(<driver state>/<handle:c>)'] } },
    [
      {
        name: 'mapped',
        do: [claim('c', { volumeMode: 'Block' }), bound('c'), podWith('p', [ofClaim('b', 'c', { readOnly: true })])],
        wait: running('p'),
        expect: together(pod('p'), csiDevice('p', 'c'), {
          events: [attachedFor('p', '<pv:c>'), ...mapped('p', 'c'), ...readOnlyNews('p', 'c')],
        }),
      },
    ],
  ),
  define('csi-expand-online', 'a claim grows while a pod uses it (EXN-3, EXN-9).', { ...one }, [
    {
      name: 'mounted',
      do: [claim('c'), bound('c'), podWith('p', [ofClaim('v', 'c')])],
      wait: running('p'),
      expect: together(pod('p', csiClaim('c')), staged('c'), { events: [attachedFor('p', '<pv:c>')] }),
    },
    {
      name: 'grown',
      do: [grow('c', '3Mi')],
      wait: [{ field: { kind: 'PersistentVolumeClaim', name: 'c', path: 'status.capacity.storage', is: '3Mi' } }],
      timeout: 120,
      api: [
        {
          kind: 'PersistentVolumeClaim',
          name: 'c',
          fields: ['status.capacity.storage', 'status.conditions', 'status.allocatedResourceStatuses'],
        },
      ],
      expect: together(pod('p', csiClaim('c')), staged('c'), {
        events: [attachedFor('p', '<pv:c>'), ...grown('p', 'c')],
        api: [
          'PersistentVolumeClaim/c status.capacity.storage="3Mi"',
          'PersistentVolumeClaim/c status.conditions=absent',
          'PersistentVolumeClaim/c status.allocatedResourceStatuses=absent',
        ],
      }),
    },
  ]),
  define(
    'csi-inline',
    'no attach, no stage; a group owns it; the driver forgets it with the pod (CSI-36, CSI-43).',
    { ...one },
    [
      {
        name: 'mounted',
        do: [
          secret('s', { k: 'v' }),
          podWith(
            'p',
            [
              {
                name: 'i',
                csi: { driver: '${driver}', nodePublishSecretRef: { name: 's' }, volumeAttributes: { a: 'b' } },
              },
              { name: 'j', csi: { driver: '${driver}', fsType: 'ext4' } },
            ],
            {
              securityContext: { fsGroup: 2000 },
            },
          ),
        ],
        wait: running('p'),
        expect: pod('p', csiInline('i', { look: '02775 0:2000' }), csiInline('j', { look: '02775 0:2000' })),
      },
    ],
  ),
  define(
    'csi-inline-secret-missing',
    'the secret of an inline volume is looked for in the pod’s namespace, after its directory was made (CSI-33).',
    { ...one },
    [
      {
        name: 'failed',
        do: [podWith('p', [{ name: 'i', csi: { driver: '${driver}', nodePublishSecretRef: { name: 'late' } } }])],
        wait: [event('p', 'FailedMount')],
        expect: together(pod('p'), {
          tree: ['<uid:p>/volumes/kubernetes.io~csi d 0750 0:0', '<uid:p>/volumes/kubernetes.io~csi/i d 0750 0:0'],
          events: [secretMissing('i', 'late')],
        }),
      },
      {
        name: 'recovered',
        do: [secret('late', { k: 'v' })],
        wait: running('p'),
        timeout: 180,
        expect: together(pod('p', csiInline('i')), { events: [secretMissing('i', 'late')] }),
      },
    ],
  ),
  define(
    'csi-generic-ephemeral',
    'EPH-*: a claim of the pod’s own: made, used, and gone with it.',
    { pods: [], needs },
    [
      {
        name: 'mounted',
        do: [
          podWith('p', [
            {
              name: 'g',
              ephemeral: {
                volumeClaimTemplate: {
                  metadata: { labels: { from: 'template' } },
                  spec: {
                    accessModes: ['ReadWriteOnce'],
                    storageClassName: '${class}',
                    resources: { requests: { storage: '1Mi' } },
                  },
                },
              },
            },
          ]),
        ],
        wait: running('p'),
        api: [
          {
            kind: 'PersistentVolumeClaim',
            name: 'p-g',
            fields: [
              'status.phase',
              'metadata.labels',
              'metadata.ownerReferences.0.name',
              'metadata.ownerReferences.0.controller',
              'metadata.ownerReferences.0.blockOwnerDeletion',
            ],
          },
        ],
        expect: together(pod('p', csiClaim('p-g')), staged('p-g'), {
          events: [attachedFor('p', '<pv:p-g>')],
          api: [
            'PersistentVolumeClaim/p-g status.phase="Bound"',
            'PersistentVolumeClaim/p-g metadata.labels={"from":"template"}',
            'PersistentVolumeClaim/p-g metadata.ownerReferences.0.name="p"',
            'PersistentVolumeClaim/p-g metadata.ownerReferences.0.controller=true',
            'PersistentVolumeClaim/p-g metadata.ownerReferences.0.blockOwnerDeletion=true',
          ],
        }),
      },
      {
        name: 'all gone',
        do: [{ delete: { kind: 'Pod', name: 'p' } }],
        wait: [
          { podGone: 'p' },
          { podDirGone: 'p' },
          { node: { inUse: 0, attached: 0 } },
          { field: { kind: 'PersistentVolumeClaim', name: 'p-g', path: 'metadata.name', is: null } },
        ],
        timeout: 60,
        api: [{ kind: 'PersistentVolumeClaim', name: 'p-g', fields: ['status.phase'] }],
        expect: {
          tree: ['<uid:p> absent'],
          events: [attachedFor('p', '<pv:p-g>')],
          api: ['PersistentVolumeClaim/p-g status.phase=no such object'],
        },
      },
    ],
  ),
  define('csi-claim-not-bound', 'a claim without a volume, then with one (KP-6).', { ...one }, [
    {
      name: 'waiting',
      do: [claim('c', { storageClassName: '${ns}-none' }), podWith('p', [ofClaim('v', 'c')])],
      wait: [event('p', 'FailedMount')],
      expect: together(pod('p'), { events: [notReady('p', 'v', 'error processing PVC <ns>/c: PVC is not bound')] }),
    },
    {
      name: 'bound',
      do: [
        create({
          kind: 'StorageClass',
          metadata: { name: '${ns}-none' },
          provisioner: '${driver}',
          volumeBindingMode: 'Immediate',
          reclaimPolicy: 'Delete',
        }),
      ],
      wait: [{ claim: { name: 'c', is: 'Bound' } }, ...running('p')],
      timeout: 180,
      expect: together(pod('p', csiClaim('c')), staged('c'), {
        events: [attachedFor('p', '<pv:c>'), notReady('p', 'v', 'error processing PVC <ns>/c: PVC is not bound')],
      }),
    },
  ]),
  define(
    'csi-single-pod-writer',
    'a claim for one pod is refused to the second, until the first has gone (MNT-5).',
    { pods: ['q'], needs },
    [
      {
        name: 'refused',
        do: [
          claim('c', { accessModes: ['ReadWriteOncePod'] }),
          bound('c'),
          podWith('p', [ofClaim('v', 'c')]),
          { await: { phase: { pod: 'p', is: 'Running' } } },
          podWith('q', [ofClaim('v', 'c')]),
        ],
        wait: [event('q', 'FailedMount')],
        expect: together(pod('p', csiClaim('c')), pod('q'), staged('c'), {
          events: [attachedFor('p', '<pv:c>'), onePodOnly('q')],
        }),
      },
      {
        name: 'free',
        do: [{ delete: { kind: 'Pod', name: 'p' } }],
        wait: [{ podGone: 'p' }, { podDirGone: 'p' }, ...running('q')],
        timeout: 120,
        expect: together({ tree: ['<uid:p> absent'] }, pod('q', csiClaim('c')), staged('c'), {
          events: [attachedFor('p', '<pv:c>'), onePodOnly('q')],
        }),
      },
    ],
  ),
]

function secretMissing(volume: string, name: string): string {
  const why = `kubernetes.io/csi: failed to find the secret ${name} in the namespace <ns> with error: secrets "${name}" not found`
  return `Pod/p Warning FailedMount: MountVolume.SetUp failed for volume "${volume}" : fetching NodePublishSecretRef <ns>/${name} failed: ${why}`
}

function onePodOnly(name: string): string {
  return `Pod/${name} Warning FailedMount: MountVolume.SetUp failed for volume "<pv:c>" : volume uses the ReadWriteOncePod access mode and is already in use by another pod`
}
