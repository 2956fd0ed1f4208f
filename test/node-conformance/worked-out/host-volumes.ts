// Volumes of the machine itself, beside the recorded cases: every kind of hostPath, local directories and disks, hostPath
// behind a claim, network storage without its programs. Worked out from HOST-*, LOCAL-*, FMT-*, BLOCK-*, PLUG-11.
import type { Case } from './pictures.ts'
import { attached, attachedFor, define, local, localDevice, mappedEvents, pod, together } from './pictures.ts'
import { event, file, localSource, loop, mkdir, ofClaim, podWith, running, symlink, volumeFor } from './objects.ts'

const setUpFailed = (name: string, volume: string, text: string) =>
  `Pod/${name} Warning FailedMount: MountVolume.SetUp failed for volume "${volume}" : ${text}`
const one = { pods: ['p'] }
const hostPath = (name: string, path: string, type?: string) => ({
  name,
  hostPath: { path: `\${tmp}/${path}`, ...(type === undefined ? {} : { type }) },
})
const top = '<tmp> d 0755 0:0'
const v = '<ns>-v'

export const hostVolumes: readonly Case[] = [
  define(
    'hostpath-directory',
    'a directory, a link to one, and no type at all; no group is given to anybody (HOST-2, HOST-3, FSG-5).',
    { ...one, hostTree: true },
    [
      {
        name: 'mounted',
        do: [
          mkdir('${tmp}/d', { mode: '0700', owner: [5, 6] }),
          file('${tmp}/d/f', 'x', { mode: '0600' }),
          symlink('${tmp}/l', '${tmp}/d'),
          podWith(
            'p',
            [
              hostPath('d', 'd', 'Directory'),
              hostPath('l', 'l', 'Directory'),
              hostPath('u', 'd'),
              hostPath('e', 'd', ''),
            ],
            {
              securityContext: { fsGroup: 2000 },
            },
          ),
        ],
        wait: running('p'),
        expect: {
          ...pod('p'),
          host: [top, '<tmp>/d d 0700 5:6', '<tmp>/d/f f 0600 0:0 "x"', '<tmp>/l l 0:0 -> <tmp>/d'],
        },
      },
    ],
  ),
  define(
    'hostpath-missing',
    'what must be there and is not; a link into nothing is nothing (HOST-3).',
    { pods: ['dir', 'socket', 'char', 'block', 'link'], hostTree: true },
    [
      {
        name: 'failed',
        do: [
          symlink('${tmp}/l', '${tmp}/nowhere'),
          podWith('dir', [hostPath('v', 'x', 'Directory')]),
          podWith('socket', [hostPath('v', 'x', 'Socket')]),
          podWith('char', [hostPath('v', 'x', 'CharDevice')]),
          podWith('block', [hostPath('v', 'x', 'BlockDevice')]),
          podWith('link', [hostPath('v', 'l', 'Directory')]),
        ],
        wait: ['dir', 'socket', 'char', 'block', 'link'].map((name) => event(name, 'FailedMount')),
        expect: {
          ...together(...['dir', 'socket', 'char', 'block', 'link'].map((name) => pod(name))),
          events: [
            setUpFailed('dir', 'v', 'hostPath type check failed: <tmp>/x is not a directory'),
            setUpFailed('socket', 'v', 'hostPath type check failed: <tmp>/x is not a socket file'),
            setUpFailed('char', 'v', 'hostPath type check failed: <tmp>/x is not a character device'),
            setUpFailed('block', 'v', 'hostPath type check failed: <tmp>/x is not a block device'),
            setUpFailed('link', 'v', 'hostPath type check failed: <tmp>/l is not a directory'),
          ],
          host: [top, '<tmp>/l l 0:0 -> <tmp>/nowhere'],
        },
      },
    ],
  ),
  define(
    'pv-hostpath',
    'behind a claim, read-only or not, a path of the host stays what it is (HOST-1).',
    { pods: ['p', 'q'], hostTree: true },
    [
      {
        name: 'mounted',
        do: [
          mkdir('${tmp}/d', { mode: '0711' }),
          ...volumeFor('c', { hostPath: { path: '${tmp}/d', type: 'Directory' } }),
          podWith('p', [ofClaim('v', 'c')], { securityContext: { fsGroup: 2000 } }),
          podWith('q', [ofClaim('v', 'c', { readOnly: true })]),
        ],
        wait: running('p', 'q'),
        expect: { ...together(pod('p'), pod('q')), host: [top, '<tmp>/d d 0711 0:0'] },
      },
    ],
  ),
  define(
    'local-readonly',
    'bound read-only; nobody is given a group; the node says that it cannot grow it (LOCAL-4, LOCAL-5, EXN-2).',
    { ...one, hostTree: true },
    [
      {
        name: 'mounted',
        do: [
          mkdir('${tmp}/d', { mode: '0750' }),
          ...volumeFor('c', localSource('${tmp}/d')),
          podWith('p', [ofClaim('v', 'c', { readOnly: true })], { securityContext: { fsGroup: 2000 } }),
        ],
        wait: running('p'),
        expect: {
          ...pod('p', local(v, '0750 0:0', '<tmp>/d', 'ro')),
          events: [
            `PersistentVolumeClaim/c Warning FileSystemResizeFailed: MountVolume.NodeExpandVolume failed for volume "${v}" requested read-only file system`,
            `Pod/p Warning FileSystemResizeFailed: MountVolume.NodeExpandVolume failed for volume "${v}" requested read-only file system`,
          ],
          host: [top, '<tmp>/d d 0750 0:0'],
        },
      },
    ],
  ),
  define(
    'local-mount-options',
    'options of the volume reach the bind, sorted and once each (PLUG-12).',
    { ...one, hostTree: true },
    [
      {
        name: 'mounted',
        do: [
          mkdir('${tmp}/d'),
          ...volumeFor('c', localSource('${tmp}/d'), { mountOptions: ['nosuid', 'noexec', 'nosuid'] }),
          podWith('p', [ofClaim('v', 'c')]),
        ],
        wait: running('p'),
        expect: { ...pod('p', local(v, '0755 0:0', '<tmp>/d', 'noexec,nosuid,rw')), host: [top, '<tmp>/d d 0755 0:0'] },
      },
    ],
  ),
  define(
    'local-device-format',
    'a blank disk is formatted, mounted once, bound into the pod (LOCAL-2, LOCAL-3, FMT-3).',
    { ...one },
    [
      {
        name: 'mounted',
        do: [loop('${tmp}/disk', 16), ...volumeFor('c', localSource('${loop.x}')), podWith('p', [ofClaim('v', 'c')])],
        wait: running('p'),
        expect: together(
          pod(
            'p',
            local(
              v,
              '0755 0:0',
              `<root>/plugins/kubernetes.io/local-volume/mounts/${v}`,
              'rw',
              ['lost+found d 0700 0:0'],
              'ext4',
            ),
          ),
          {
            mounts: [`plugins/kubernetes.io/local-volume/mounts/${v} type=ext4 from=loop(<tmp>/disk) opts=rw`],
            plugins: [
              `kubernetes.io/local-volume/mounts/${v} d 0755 0:0`,
              `kubernetes.io/local-volume/mounts/${v}/lost+found d 0700 0:0`,
            ],
          },
        ),
      },
    ],
  ),
  define(
    'local-block',
    'a disk in two pods; one goes, the other keeps it (BLOCK-2, LOCAL-8).',
    { pods: ['q'], block: ['b'] },
    [
      {
        name: 'mapped',
        do: [
          loop('${tmp}/disk', 1),
          ...volumeFor('c', localSource('${loop.x}'), { volumeMode: 'Block' }, { volumeMode: 'Block' }),
          podWith('p', [ofClaim('b', 'c')]),
          podWith('q', [ofClaim('b', 'c')]),
        ],
        wait: running('p', 'q'),
        expect: together(pod('p'), pod('q'), localDevice('p', v, '<tmp>/disk'), localDevice('q', v, '<tmp>/disk'), {
          events: [...localMapped('p'), ...localMapped('q')],
        }),
      },
      {
        name: 'one deleted',
        do: [{ delete: { kind: 'Pod', name: 'p' } }],
        wait: [{ podGone: 'p' }, { podDirGone: 'p' }],
        expect: together({ tree: ['<uid:p> absent'] }, pod('q'), localDevice('q', v, '<tmp>/disk'), {
          events: [...localMapped('p'), ...localMapped('q')],
        }),
      },
    ],
  ),
  define(
    'network-no-tools',
    'without the programs and without disks; a pod of its own for each (NFS-2, ISCSI-5, FC-3).',
    {
      pods: ['nfs', 'iscsi', 'fc'],
      own: ['iqn.2001-04.com.example:${ns}', '500a0982991b8dc5'],
      normalize: [['Output: [\\s\\S]*', 'Output: …']],
    },
    [
      {
        name: 'failed',
        do: [
          podWith('nfs', [{ name: 'v', nfs: { server: '127.0.0.1', path: '/export', readOnly: true } }]),
          podWith('iscsi', [
            { name: 'v', iscsi: { targetPortal: '127.0.0.1', iqn: 'iqn.2001-04.com.example:${ns}', lun: 0 } },
          ]),
          podWith('fc', [{ name: 'v', fc: { targetWWNs: ['500a0982991b8dc5'], lun: 2 } }]),
        ],
        wait: ['nfs', 'iscsi', 'fc'].map((name) => event(name, 'FailedMount', 'MountVolume')),
        expect: together(
          pod('iscsi'),
          pod('fc'),
          pod('nfs'),
          { tree: ['<uid:nfs>/volumes/kubernetes.io~nfs d 0750 0:0'] },
          attached('kubernetes.io/iscsi/127.0.0.1:iqn.2001-04.com.example:<ns>:0'),
          attached('kubernetes.io/fc/[500a0982991b8dc5]:2'),
          {
            events: [
              attachedFor('iscsi', 'v'),
              attachedFor('fc', 'v'),
              'Pod/fc Warning FailedMount: MountVolume.WaitForAttach failed for volume "v" : no fc disk found',
              'Pod/iscsi Warning FailedMount: MountVolume.WaitForAttach failed for volume "v" : executable file not found in $PATH',
              setUpFailed(
                'nfs',
                'v',
                'mount failed: exit status 32 Mounting command: mount Mounting arguments: -t nfs -o ro 127.0.0.1:/export <root>/pods/<uid:nfs>/volumes/kubernetes.io~nfs/v Output: …',
              ),
            ],
          },
        ),
      },
    ],
  ),
]

function localMapped(name: string): string[] {
  return mappedEvents(name, v, `kubernetes.io~local-volume/volumeDevices/${v}`, 'kubernetes.io~local-volume')
}
