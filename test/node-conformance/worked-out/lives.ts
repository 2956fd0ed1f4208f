// Ends of pods and parts of volumes, beside the recorded cases: init containers, deletion without grace, containers that
// begin again, sub-paths of every kind. Worked out from KP-*, VM-7, SUBPATH-*.
import type { Case, Picture } from './pictures.ts'
import {
  severalShown,
  attachedFor,
  csiClaim,
  data,
  define,
  emptyDir,
  pod,
  staged,
  subPath,
  together,
} from './pictures.ts'
import {
  bound,
  claim,
  configMap,
  content,
  event,
  file,
  inVolume,
  mkdir,
  ofClaim,
  patch,
  phase,
  podWith,
  running,
  secret,
  symlink,
  mounts,
  several,
} from './objects.ts'

const needsContainers = ['containers'] as const
const host = '<host>'
const hostAll = { name: 'h', hostPath: { path: '${tmp}', type: 'Directory' } }
const part = (how: object, env: readonly object[] = []) => ({
  containers: [{ name: 'c', env, volumeMounts: [{ name: 'h', mountPath: '/x', ...how }] }],
})
export const lives: readonly Case[] = [
  define(
    'life-init-failed',
    'an init container that fails ends the pod; the volumes it had go (KP-9).',
    { pods: ['p'], needs: needsContainers },
    [
      {
        name: 'failed',
        do: [
          configMap('c', { k: 'v' }),
          podWith(
            'p',
            [
              { name: 'e', emptyDir: {} },
              { name: 'cm', configMap: { name: 'c' } },
            ],
            {
              initContainers: [
                {
                  name: 'i',
                  image: '${image}',
                  imagePullPolicy: 'Never',
                  command: ['sh', '-c', 'exit 3'],
                  volumeMounts: mounts('e', 'cm'),
                },
              ],
            },
          ),
        ],
        wait: [phase('p', 'Failed'), { gone: inVolume('p', 'empty-dir', 'e') }],
        expect: together(pod('p'), endedDirectories('p', 'configmap', 'empty-dir')),
      },
    ],
  ),
  define(
    'life-init-only-volume',
    'a volume that only an init container mounts is set up and stays while the pod runs (KP-4).',
    { pods: ['p'], needs: needsContainers, hostTree: true },
    [
      {
        name: 'running',
        do: [
          mkdir('${tmp}/out'),
          secret('s', { k: 'v' }),
          podWith(
            'p',
            [
              { name: 's', secret: { secretName: 's' } },
              { name: 'out', hostPath: { path: '${tmp}/out', type: 'Directory' } },
            ],
            {
              initContainers: [
                {
                  name: 'i',
                  image: '${image}',
                  imagePullPolicy: 'Never',
                  command: ['sh', '-c', 'cat /mnt/s/k > /mnt/out/k'],
                  volumeMounts: mounts('s', 'out'),
                },
              ],
              containers: [{ name: 'c', volumeMounts: mounts('out') }],
            },
          ),
        ],
        wait: running('p'),
        expect: {
          ...pod('p', data('secret', 's', { files: { k: 'v' } })),
          host: ['<tmp> d 0755 0:0', '<tmp>/out d 0755 0:0', '<tmp>/out/k f 0644 0:0 "v"'],
        },
      },
    ],
  ),
  define(
    'life-force-delete',
    'a pod taken away without grace leaves as little as any other (VM-7).',
    { pods: [], needs: ['csi'] },
    [
      {
        name: 'mounted',
        do: [
          configMap('c', { k: 'v' }),
          secret('s', { k: 'v' }),
          claim('k'),
          bound('k'),
          podWith('p', [...several, ofClaim('v', 'k')], { terminationGracePeriodSeconds: 30 }),
        ],
        wait: running('p'),
        expect: together(pod('p', ...severalShown, csiClaim('k')), staged('k'), {
          events: [attachedFor('p', '<pv:k>')],
        }),
      },
      {
        name: 'gone',
        do: [{ delete: { kind: 'Pod', name: 'p', grace: 0 } }],
        wait: [{ podGone: 'p' }, { podDirGone: 'p' }, { node: { inUse: 0, attached: 0 } }],
        timeout: 120,
        expect: { tree: ['<uid:p> absent'], events: [attachedFor('p', '<pv:k>')] },
      },
    ],
  ),
  define(
    'life-container-restarts',
    'a container that begins again finds its volumes, and its parts of them, as they were (SUBPATH-8).',
    { pods: ['p'], needs: needsContainers },
    [
      {
        name: 'began again',
        do: [
          podWith('p', [{ name: 'e', emptyDir: {} }], {
            restartPolicy: 'Always',
            containers: [
              {
                name: 'c',
                command: [
                  'sh',
                  '-c',
                  'echo x >> /mnt/part/starts; [ $(wc -l < /mnt/part/starts) -ge 2 ] || exit 1; trap "exit 0" TERM; while :; do sleep 1; done',
                ],
                volumeMounts: [{ name: 'e', mountPath: '/mnt/part', subPath: 'part' }],
              },
            ],
          }),
        ],
        wait: [content(inVolume('p', 'empty-dir', 'e/part/starts'), 'x\nx\n')],
        expect: pod(
          'p',
          emptyDir('e', { more: ['part d 0777 0:0', 'part/starts f 0644 0:0 "x\\nx\\n"'] }),
          subPath(
            'e',
            'c',
            0,
            'd 0777 0:0',
            `type=${host} from=<root>/pods/<uid:p>/volumes/kubernetes.io~empty-dir/e/part opts=rw`,
            ['starts f 0644 0:0 "x\\nx\\n"'],
          ),
        ),
      },
    ],
  ),
  define(
    'subpath-file',
    'a file of a volume at a path of its own; updates do not reach it (SUBPATH-7, CONF-13).',
    { pods: ['p'], needs: needsContainers, hostTree: true },
    [
      {
        name: 'mounted',
        do: [
          mkdir('${tmp}/d'),
          file('${tmp}/d/f', 'host', { mode: '0600', owner: [5, 6] }),
          configMap('c', { k: 'old' }),
          podWith(
            'p',
            [
              { name: 'cm', configMap: { name: 'c' } },
              { name: 'h', hostPath: { path: '${tmp}/d', type: 'Directory' } },
            ],
            {
              containers: [
                {
                  name: 'c',
                  volumeMounts: [
                    { name: 'cm', mountPath: '/mnt/k', subPath: 'k' },
                    { name: 'h', mountPath: '/mnt/f', subPath: './f' },
                    { name: 'cm', mountPath: '/mnt/whole' },
                  ],
                },
              ],
            },
          ),
        ],
        wait: running('p'),
        expect: fileParts(1, 'old', ''),
      },
      {
        name: 'updated',
        do: [patch('ConfigMap', 'c', { data: { k: 'new' } })],
        wait: [content(inVolume('p', 'configmap', 'cm/k'), 'new')],
        timeout: 200,
        expect: fileParts(2, 'new', '//deleted'),
      },
    ],
  ),
  define(
    'subpath-missing',
    'a part that is missing is made with the mode of its volume, in memory and by a group, too (SUBPATH-3).',
    { pods: ['p'], needs: needsContainers },
    [
      {
        name: 'mounted',
        do: [
          secret('s', { k: 'v' }),
          podWith(
            'p',
            [
              { name: 'm', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
              { name: 's', secret: { secretName: 's' } },
            ],
            {
              securityContext: { fsGroup: 2000 },
              containers: [
                {
                  name: 'c',
                  volumeMounts: [
                    { name: 'm', mountPath: '/mnt/m', subPath: 'a/b' },
                    { name: 's', mountPath: '/mnt/s', subPath: 'nope' },
                  ],
                },
              ],
            },
          ),
        ],
        wait: running('p'),
        expect: pod(
          'p',
          emptyDir('m', { size: '1024k', fsGroup: 2000, more: ['a d 03777 0:2000', 'a/b d 03777 0:2000'] }),
          data('secret', 's', { files: { k: 'v' }, fsGroup: 2000, more: ['nope d 03777 0:2000'] }),
          subPath(
            'm',
            'c',
            0,
            'd 03777 0:2000',
            'type=tmpfs from=<root>/pods/<uid:p>/volumes/kubernetes.io~empty-dir/m/a/b opts=rw,size=1024k',
          ),
          subPath(
            's',
            'c',
            1,
            'd 03777 0:2000',
            'type=tmpfs from=<root>/pods/<uid:p>/volumes/kubernetes.io~secret/s/nope opts=rw,size=<node allocatable>',
          ),
        ),
      },
    ],
  ),
  define(
    'subpath-refused',
    'a variable without a value, a way up, and a file where a directory should be (SUBPATH-2, SUBPATH-4).',
    { pods: ['var', 'up', 'file'], needs: needsContainers, alsoReasons: ['Failed'], hostTree: true },
    [
      {
        name: 'failed',
        do: [
          file('${tmp}/f', 'x'),
          symlink('${tmp}/l', '..'),
          podWith('var', [hostAll], part({ subPathExpr: '$(NOPE)/x' })),
          podWith('up', [hostAll], part({ subPathExpr: '$(UP)' }, [{ name: 'UP', value: 'a/../..' }])),
          podWith('file', [hostAll], part({ subPath: 'f/below' })),
        ],
        wait: ['var', 'up', 'file'].map((name) => event(name, 'Failed')),
        expect: {
          ...together(pod('var'), pod('up'), pod('file')),
          events: [
            'Pod/var Warning Failed: Error: missing value for NOPE',
            "Pod/up Warning Failed: Error: unable to provision SubPath `a/../..`: must not contain '..'",
            'Pod/file Warning Failed: Error: failed to prepare subPath for volumeMount "h" of container "c"',
          ],
          host: ['<tmp> d 0755 0:0', '<tmp>/f f 0644 0:0 "x"', '<tmp>/l l 0:0 -> ..'],
        },
      },
    ],
  ),
]

/** What stays of a pod that has ended: the directories of its plugins, without their volumes. */
function endedDirectories(name: string, ...plugins: readonly string[]): Picture {
  const own = plugins.map(
    (plugin) => `<uid:${name}>/volumes/kubernetes.io~${plugin} d ${plugin === 'csi' ? '0750' : '0755'} 0:0`,
  )
  return { tree: own, podPlugins: [`<uid:${name}>/plugins/kubernetes.io~empty-dir d 0750 0:0`] }
}

/** The part stays what it was when the container began; the directory it was in is gone after an update. */
function fileParts(stamp: number, k: string, gone: string): Picture {
  const from = `<root>/pods/<uid:p>/volumes/kubernetes.io~configmap/cm/..<ts1>/k${gone && ''}`
  return {
    ...pod(
      'p',
      data('configmap', 'cm', { files: { k }, stamp }),
      subPath('cm', 'c', 0, 'f 0644 0:0 "old"', `type=${host} from=${from} opts=rw`),
      subPath('h', 'c', 1, 'f 0600 5:6 "host"', `type=${host} from=<tmp>/d/f opts=rw`),
    ),
    host: ['<tmp> d 0755 0:0', '<tmp>/d d 0755 0:0', '<tmp>/d/f f 0600 5:6 "host"'],
  }
}
