// What an agent finds when it comes back, beside the recorded cases: pods deleted and ended meanwhile, devices, parts of
// volumes. Worked out from RCS-*, KP-2, LAYOUT-11.
import type { Case, Picture } from './pictures.ts'
import {
  severalShown,
  attachedFor,
  csiClaim,
  csiDevice,
  csiInline,
  define,
  emptyDir,
  local,
  mappedEvents,
  pod,
  staged,
  subPath,
  together,
} from './pictures.ts'
import {
  agent,
  bound,
  claim,
  configMap,
  finish,
  inVolume,
  localSource,
  mkdir,
  ofClaim,
  phase,
  podWith,
  running,
  secret,
  volumeFor,
  mounts,
  several,
} from './objects.ts'

const v = '<ns>-v'
const needsAgent = ['agent', 'csi'] as const
/** Waits for a file and ends as it says. */
const obedient = (mounts: readonly { name: string; mountPath: string }[]) => ({
  containers: [
    {
      name: 'c',
      command: ['sh', '-c', 'while [ ! -e /ctl/done ]; do sleep 0.2; done; exit $(cat /ctl/done)'],
      volumeMounts: [{ name: 'ctl', mountPath: '/ctl' }, ...mounts],
    },
  ],
})
const ctl = { name: 'ctl', hostPath: { path: '${tmp}/ctl' } }
const host = '<host>'
const deviceVolumes = [ofClaim('b', 'k'), { name: 'e', emptyDir: {} }]
const deviceContainer = {
  containers: [
    {
      name: 'c',
      volumeDevices: [{ name: 'b', devicePath: '/dev/b' }],
      volumeMounts: [{ name: 'e', mountPath: '/mnt/e', subPath: 'part' }],
    },
  ],
}

export const restarts: readonly Case[] = [
  define(
    'restart-pod-deleted-meanwhile',
    'all that a pod had is found on disk and taken away (RCS-10).',
    { pods: [], needs: needsAgent },
    [
      {
        name: 'mounted',
        do: [
          mkdir('${tmp}/d'),
          configMap('c', { k: 'v' }),
          secret('s', { k: 'v' }),
          claim('k'),
          bound('k'),
          ...volumeFor('l', localSource('${tmp}/d')),
          podWith(
            'p',
            [...several, ofClaim('v', 'k'), ofClaim('l', 'l'), { name: 'i', csi: { driver: '${driver}' } }],
            {
              containers: [
                {
                  name: 'c',
                  volumeMounts: [
                    ...mounts('e', 'm', 'cm', 's', 'l', 'i'),
                    { name: 'v', mountPath: '/mnt/v', subPath: 'sub' },
                  ],
                },
              ],
            },
          ),
        ],
        wait: running('p'),
        expect: everything(),
      },
      {
        name: 'agent down, pod gone',
        do: [agent('stop'), { delete: { kind: 'Pod', name: 'p', grace: 0 } }],
        wait: [{ podGone: 'p' }],
        settle: 3000,
        expect: everything(),
      },
      {
        name: 'cleaned up',
        do: [agent('start')],
        wait: [{ podDirGone: 'p' }, { node: { inUse: 0, attached: 0 } }],
        timeout: 180,
        expect: { tree: ['<uid:p> absent'], events: [attachedFor('p', '<pv:k>')] },
      },
    ],
  ),
  define(
    'restart-keeps-devices',
    'devices and parts of volumes stay as they are (RCS-10, BLOCK-2).',
    { pods: ['p'], needs: needsAgent, block: ['b'], left: { loops: ['loop(<driver state>/<handle:k>)'] } },
    [
      {
        name: 'mapped',
        do: [claim('k', { volumeMode: 'Block' }), bound('k'), podWith('p', deviceVolumes, deviceContainer)],
        wait: running('p'),
        expect: devices(),
      },
      {
        name: 'restarted',
        do: [agent('restart'), { sleep: 6000 }],
        wait: [],
        settle: 5000,
        timeout: 90,
        expect: devices(),
      },
    ],
  ),
  define(
    'restart-pod-ended-meanwhile',
    'a pod whose container ends while the agent is down gives its volumes back (RCS-10, KP-2).',
    { pods: ['p'], needs: needsAgent },
    [
      {
        name: 'mounted',
        do: [
          mkdir('${tmp}/ctl'),
          configMap('c', { k: 'v' }),
          secret('s', { k: 'v' }),
          claim('k'),
          bound('k'),
          podWith('p', [ctl, ...several, ofClaim('v', 'k')], obedient(mounts('e', 'm', 'cm', 's', 'v'))),
        ],
        wait: running('p'),
        expect: together(pod('p', ...severalShown, csiClaim('k')), staged('k'), {
          events: [attachedFor('p', '<pv:k>')],
        }),
      },
      {
        name: 'ended',
        do: [agent('stop'), finish('p', '${tmp}/ctl/done', '0'), { sleep: 1500 }, agent('start')],
        wait: [
          phase('p', 'Succeeded'),
          { unmounted: inVolume('p', 'secret', 's') },
          { node: { inUse: 0, attached: 0 } },
        ],
        timeout: 120,
        expect: together(pod('p'), endedDirectories('p', 'configmap', 'csi', 'empty-dir', 'secret'), {
          events: [attachedFor('p', '<pv:k>')],
        }),
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

function everything(): Picture {
  return together(
    pod(
      'p',
      ...severalShown,
      csiClaim('k', { more: ['sub d 0755 0:0'] }),
      csiInline('i'),
      local(v, '0755 0:0', '<tmp>/d'),
      subPath('<pv:k>', 'c', 6, 'd 0755 0:0', `type=${host} from=<driver state>/<handle:k>/sub opts=rw`),
    ),
    staged('k'),
    { events: [attachedFor('p', '<pv:k>')] },
  )
}

function devices(): Picture {
  const at = '<root>/pods/<uid:p>/volumes/kubernetes.io~empty-dir/e/part'
  const map = 'kubernetes.io/csi/volumeDevices/<pv:k>/dev'
  return together(
    pod(
      'p',
      emptyDir('e', { more: ['part d 0777 0:0'] }),
      subPath('e', 'c', 0, 'd 0777 0:0', `type=${host} from=${at} opts=rw`),
    ),
    csiDevice('p', 'k'),
    { events: [attachedFor('p', '<pv:k>'), ...mappedEvents('p', '<pv:k>', map, 'kubernetes.io~csi')] },
  )
}
