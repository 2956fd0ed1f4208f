// What containers see of their volumes, many at once, and storage that answers late or never; beside the recorded cases.
import type { Case, Picture } from './pictures.ts'
import { attached, attachedFor, csiClaim, define, emptyDir, pod, staged, subPath, together } from './pictures.ts'
import { bound, claim, create, event, file, mkdir, ofClaim, podWith, running, volumeFor, mounts } from './objects.ts'

const needs = ['containers'] as const
const out = { name: 'out', hostPath: { path: '${tmp}/out', type: 'Directory' } }
const stay = 'trap "exit 0" TERM; while :; do sleep 1; done'
const claims = Array.from({ length: 6 }, (_, index) => `c${index}`)
const inE = (path: string) => `pods/\${uid.p}/volumes/kubernetes.io~empty-dir/e/${path}`
const part = (index: number) =>
  subPath(
    'e',
    'c',
    index,
    'd 0777 0:0',
    'type=<host> from=<root>/pods/<uid:p>/volumes/kubernetes.io~empty-dir/e/part opts=rw',
    ['x f 0644 0:0 "x\\n"'],
  )
const viewer = (name: string, mountPropagation: string) => ({
  name,
  image: '${image}',
  imagePullPolicy: 'Never',
  command: [
    'sh',
    '-c',
    `touch /mnt/out/${name}.here; while [ ! -e /mnt/out/made ]; do sleep 0.1; done; ls /mnt/e/in > /mnt/out/${name}; ${stay}`,
  ],
  volumeMounts: [
    { name: 'out', mountPath: '/mnt/out' },
    { name: 'e', mountPath: '/mnt/e', mountPropagation },
  ],
})
const flexDriver = (capabilities: string) => `#!/bin/sh
case $1 in
  init) echo '{"status":"Success","capabilities":{${capabilities}}}' ;;
  mount) mount --bind "$(printf %s "$3" | sed 's/.*"from":"\\([^"]*\\)".*/\\1/')" "$2" && echo '{"status":"Success"}' ;;
  unmount) umount "$2" && echo '{"status":"Success"}' ;;
  *) echo '{"status":"Not supported"}'; exit 1 ;;
esac
`
const flexPlugins = ['', '/held', '/held/mounts'].map((path) => `kubernetes.io/flexvolume/<ns>${path} d 0750 0:0`)
const top = ['<tmp> d 0755 0:0', '<tmp>/out d 0755 0:0']

export const seen: readonly Case[] = [
  define(
    'seen-groups',
    'group of the pod and of the volume reach the processes, which can write (VM-10, FSG-3).',
    { pods: ['p'], needs, hostTree: true },
    [
      {
        name: 'seen',
        do: [
          mkdir('${tmp}/out', { mode: '0777' }),
          mkdir('${tmp}/d', { mode: '0770', owner: [0, 777] }),
          create({
            kind: 'PersistentVolume',
            metadata: { name: '${ns}-v', annotations: { 'pv.beta.kubernetes.io/gid': '777' } },
            spec: {
              capacity: { storage: '1Mi' },
              accessModes: ['ReadWriteOnce'],
              persistentVolumeReclaimPolicy: 'Retain',
              storageClassName: '',
              claimRef: { namespace: '${ns}', name: 'c' },
              hostPath: { path: '${tmp}/d' },
            },
          }),
          claim('c', { storageClassName: '', volumeName: '${ns}-v' }),
          bound('c'),
          podWith('p', [out, ofClaim('v', 'c'), { name: 'e', emptyDir: {} }], {
            securityContext: { runAsUser: 1000, runAsGroup: 1001, fsGroup: 2000, supplementalGroups: [3000] },
            containers: [
              {
                name: 'c',
                command: [
                  'sh',
                  '-c',
                  `id -u > /mnt/out/seen; id -g >> /mnt/out/seen; id -G | tr ' ' '\\n' | sort -n | tr '\\n' ' ' >> /mnt/out/seen; touch /mnt/v/new /mnt/e/new; ${stay}`,
                ],
                volumeMounts: mounts('out', 'v', 'e'),
              },
            ],
          }),
        ],
        wait: [...running('p'), { exists: '${tmp}/d/new' }],
        expect: {
          ...pod('p', emptyDir('e', { fsGroup: 2000, more: ['new f 0644 1000:2000 ""'] })),
          host: [
            '<tmp> d 0755 0:0',
            '<tmp>/d d 0770 0:777',
            '<tmp>/d/new f 0644 1000:1001 ""',
            '<tmp>/out d 0777 0:0',
            '<tmp>/out/seen f 0644 1000:1001 "1000\\n1001\\n777 1001 2000 3000 "',
          ],
        },
      },
    ],
  ),
  define(
    'seen-propagation',
    'a mount that one container makes reaches the host and containers that ask for it, nobody else (PLUG-14).',
    { pods: ['p'], needs, hostTree: true },
    [
      {
        name: 'seen',
        do: [
          mkdir('${tmp}/out'),
          podWith('p', [out, { name: 'e', emptyDir: {} }], {
            containers: [
              viewer('reader', 'HostToContainer'),
              viewer('other', 'None'),
              {
                name: 'maker',
                image: '${image}',
                imagePullPolicy: 'Never',
                securityContext: { privileged: true },
                command: [
                  'sh',
                  '-c',
                  'while [ ! -e /mnt/out/reader.here ] || [ ! -e /mnt/out/other.here ]; do sleep 0.1; done; mkdir /mnt/e/in && mount -t tmpfs -o size=64k made /mnt/e/in && touch /mnt/e/in/f /mnt/out/made; trap "umount /mnt/e/in; exit 0" TERM; while :; do sleep 0.2; done',
                ],
                volumeMounts: [
                  { name: 'out', mountPath: '/mnt/out' },
                  { name: 'e', mountPath: '/mnt/e', mountPropagation: 'Bidirectional' },
                ],
              },
            ],
          }),
        ],
        wait: [{ exists: '${tmp}/out/reader' }, { exists: '${tmp}/out/other' }],
        expect: {
          ...pod('p', emptyDir('e', { more: ['in d 01777 0:0', 'in/f f 0644 0:0 ""'] })),
          mounts: ['pods/<uid:p>/volumes/kubernetes.io~empty-dir/e/in type=tmpfs from=made opts=rw,size=64k'],
          host: [
            ...top,
            ...['made', 'other.here', 'reader.here', 'other'].map((name) => `<tmp>/out/${name} f 0644 0:0 ""`),
            '<tmp>/out/reader f 0644 0:0 "f\\n"',
          ],
        },
      },
    ],
  ),
  define(
    'seen-subpath-readonly',
    'a part that the container may only read; the mount for it is not changed (PLUG-14, SUBPATH-7).',
    { pods: ['p'], needs, hostTree: true },
    [
      {
        name: 'seen',
        do: [
          mkdir('${tmp}/out'),
          podWith('p', [out, { name: 'e', emptyDir: {} }], {
            containers: [
              {
                name: 'c',
                command: [
                  'sh',
                  '-c',
                  `(touch /mnt/ro/x 2>/dev/null && echo written || echo refused) > /mnt/out/seen; echo x > /mnt/rw/x; ${stay}`,
                ],
                volumeMounts: [
                  { name: 'out', mountPath: '/mnt/out' },
                  { name: 'e', mountPath: '/mnt/ro', subPath: 'part', readOnly: true },
                  { name: 'e', mountPath: '/mnt/rw', subPath: 'part' },
                ],
              },
            ],
          }),
        ],
        wait: [...running('p'), { exists: inE('part/x') }],
        expect: {
          ...pod('p', emptyDir('e', { more: ['part d 0777 0:0', 'part/x f 0644 0:0 "x\\n"'] }), part(1), part(2)),
          host: [...top, '<tmp>/out/seen f 0644 0:0 "refused\\n"'],
        },
      },
    ],
  ),
  define(
    'many-claims',
    'claims of their own and one shared by all, made and deleted at once (TP-42).',
    { pods: claims.map((name) => `p-${name}`), needs: ['csi'], ignoreEvents: ['<pv:shared>', 'not bound'] },
    [
      {
        name: 'mounted',
        do: [
          claim('shared', { accessModes: ['ReadWriteMany'] }),
          bound('shared'),
          ...claims.flatMap((name) => [
            claim(name),
            podWith(`p-${name}`, [ofClaim('own', name), ofClaim('all', 'shared')]),
          ]),
        ],
        wait: running(...claims.map((name) => `p-${name}`)),
        timeout: 120,
        expect: together(
          ...claims.map((name) => pod(`p-${name}`, csiClaim(name), csiClaim('shared'))),
          staged('shared', ...claims),
          { events: claims.map((name) => attachedFor(`p-${name}`, `<pv:${name}>`)) },
        ),
      },
    ],
  ),
  define(
    'csi-attach-nobody',
    'no driver is there to attach; the wait ends after two minutes, with an event (CSI-21).',
    { pods: ['p'] },
    [
      {
        name: 'failed',
        do: [
          ...volumeFor('c', { csi: { driver: '${ns}.csi.example.com', volumeHandle: '${ns}-v-handle' } }),
          podWith('p', [ofClaim('v', 'c')]),
        ],
        wait: [event('p', 'FailedAttachVolume')],
        timeout: 300,
        expect: together(pod('p'), {
          node: ['in use: kubernetes.io/csi/<ns>.csi.example.com^<ns>-v-handle'],
          events: [
            'Pod/p Warning FailedAttachVolume: AttachVolume.Attach failed for volume "<ns>-v" : timed out waiting for external-attacher of <ns>.csi.example.com CSI driver to attach volume <ns>-v-handle',
          ],
        }),
      },
    ],
  ),
  define(
    'flexvolume',
    'two drivers appear while the node runs: one only mounts, one is attached first (FLEX-1, FLEX-2, FLEX-8, FLEX-9).',
    { pods: ['p', 'q'], hostTree: true, own: ['${ns}/held/f'], kept: { plugins: flexPlugins } },
    [
      {
        name: 'mounted',
        do: [
          mkdir('${tmp}/d'),
          podWith('p', [{ name: 'f', flexVolume: { driver: '${ns}/bind', options: { from: '${tmp}/d' } } }], {
            securityContext: { fsGroup: 2000 },
          }),
          podWith('q', [
            { name: 'f', flexVolume: { driver: '${ns}/held', options: { from: '${tmp}/d' }, readOnly: true } },
          ]),
          mkdir('${root}/../flex/${ns}~bind'),
          file('${root}/../flex/${ns}~bind/bind', flexDriver('"attach":false'), { mode: '0755' }),
          mkdir('${root}/../flex/${ns}~held'),
          file('${root}/../flex/${ns}~held/held', flexDriver('"fsGroup":true'), { mode: '0755' }),
        ],
        wait: running('p', 'q'),
        expect: {
          ...together(
            pod('p'),
            pod('q'),
            flexVolume('p', 'bind', '02775 0:2000'),
            flexVolume('q', 'held', '02775 0:2000'),
            attached('<ns>/held/f'),
            { plugins: [...flexPlugins, 'kubernetes.io/flexvolume/<ns>/held/mounts/f d 0750 0:0'] },
          ),
          host: ['<tmp> d 0755 0:0', '<tmp>/d d 02775 0:2000'],
          events: [attachedFor('q', 'f')],
        },
      },
    ],
  ),
]

function flexVolume(name: string, driver: string, look: string): Picture {
  return {
    tree: [`<uid:${name}>/volumes/<ns>~${driver} d 0750 0:0`, `<uid:${name}>/volumes/<ns>~${driver}/f d ${look}`],
    mounts: [`pods/<uid:${name}>/volumes/<ns>~${driver}/f type=<host> from=<tmp>/d opts=rw`],
  }
}
