// Does any volume type leave anything behind? Every call that its node makes for a pod, from the first mount to the last
// unmount, fails before or after its effect, hangs, or is the last of an agent that dies. Then pod and claim are deleted.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pluginCases } from '../kit/plugin-cases.ts'
import type { PluginCase } from '../kit/plugin-cases.ts'
import { openMatrix, publishingBy, troubleKinds } from '../kit/fault-matrix.ts'
import type { LifeCase } from '../kit/fault-matrix.ts'
import { claimRequest } from '../kit/objects.ts'
import type { ModelHost } from '../../src/host/model/model-host.ts'
import { driver } from '../kit/whole-cluster.ts'

/** Local volumes must name their nodes; others may. */
const onNode = {
  required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'Exists' as const }] }] },
}

/** A case of the contract as a pod's volume: inline, or a claim that is bound to its PersistentVolume. */
function lifeOf({ name, spec, prepare, ...rest }: PluginCase): LifeCase {
  const common = { name, ...rest, ...(prepare ? { prepare } : {}), raw: spec.mode === 'Block' }
  const { persistentVolume } = spec
  if (!persistentVolume) return { ...common, volume: () => ({ name: 'v', [spec.source.kind]: spec.source.value }) }
  return {
    ...common,
    volume: (life) => ({ name: 'v', persistentVolumeClaim: { claimName: `claim-${life}` } }),
    objects: (life) => ({
      claim: claimRequest(`claim-${life}`, {
        accessModes: ['ReadWriteOnce'],
        storageClassName: '',
        volumeName: `pv-${life}`,
        volumeMode: spec.mode,
        resources: { requests: { storage: '1Gi' } },
      }),
      volume: {
        metadata: { name: `pv-${life}` },
        spec: { ...persistentVolume.spec, persistentVolumeReclaimPolicy: 'Retain', nodeAffinity: onNode },
      },
    }),
  }
}

const flexDirectory = '/opt/flex'
const flexProgram = `${flexDirectory}/acme~disk/disk`

/** A FlexVolume driver that mounts memory. */
async function installFlexDriver({ programs, quiet }: ModelHost): Promise<void> {
  const signal = new AbortController().signal
  programs.set(flexProgram, async ({ argv: [, command, target = ''] }) => {
    if (command === 'mount') await quiet.mounts.mount({ source: 'tmpfs', target, type: 'tmpfs', options: [] }, signal)
    if (command === 'unmount') await quiet.mounts.unmount(target, {}, signal)
    const answer = { status: 'Success', ...(command === 'init' ? { capabilities: { attach: false } } : {}) }
    return { exitCode: 0, stdout: JSON.stringify(answer), stderr: '' }
  })
  await quiet.files.mkdirAll(`${flexDirectory}/acme~disk`, 0o755, signal)
  await quiet.files.writeFile(flexProgram, '#!', { mode: 0o755 }, signal)
}

/** Inline volumes are memory. */
const withInlineVolumes = publishingBy(({ mounts }, { targetPath: target }, signal) =>
  mounts.mount({ source: 'tmpfs', target, type: 'tmpfs', options: [] }, signal),
)

const provisioned = { storageClassName: 'model', resources: { requests: { storage: '1Gi' } } }
const ofClaim = (life: number) => ({ name: 'v', persistentVolumeClaim: { claimName: `claim-${life}` } })
const csiClaim = (mode: 'Filesystem' | 'Block') => (life: number) => ({
  claim: claimRequest(`claim-${life}`, { ...provisioned, accessModes: ['ReadWriteOnce'], volumeMode: mode }),
})

/** What is not in the list of built-in plugins: drivers, and claims that a pod brings along. */
const more: readonly LifeCase[] = [
  {
    name: 'flexVolume',
    flexDirectory,
    prepare: installFlexDriver,
    volume: () => ({ name: 'v', flexVolume: { driver: 'acme/disk' } }),
  },
  { name: 'csi, inline', volume: () => ({ name: 'v', csi: { driver } }), driver: withInlineVolumes },
  { name: 'csi', volume: ofClaim, objects: csiClaim('Filesystem') },
  { name: 'csi that grows', volume: ofClaim, objects: csiClaim('Filesystem'), grows: true },
  { name: 'csi, raw', volume: ofClaim, objects: csiClaim('Block'), raw: true },
  {
    name: 'ephemeral',
    volume: () => ({
      name: 'v',
      ephemeral: { volumeClaimTemplate: { spec: { ...provisioned, accessModes: ['ReadWriteOnce'] } } },
    }),
  },
]

const cases = [...pluginCases.map(lifeOf), ...more]
/** The heavy suite takes every kind and case, and fails every question too. Here: every third call that changes something, and the kind that leaves the most in doubt. */
const everything = process.env['HAWSER_HEAVY'] === '1'
const kinds = everything ? troubleKinds : (['crashesAfter'] as const)

const heavy = ['iscsi, raw', 'fc, raw', 'csi that grows', 'ephemeral']

for (const each of cases.filter(({ name }) => everything || !heavy.includes(name))) {
  for (const port of ['host', 'driver'] as const) {
    if (port === 'driver' && !/^csi|^ephemeral/.test(each.name)) continue
    test(`${each.name} leaves nothing when any call to the ${port} fails, hangs or is the agent's last`, async () => {
      const leaks: string[] = []
      let matrix = await openMatrix(each)
      assert.deepEqual(matrix.first.left, [], 'a life without trouble')
      for (const kind of kinds) {
        // How a question fails does not matter: it has no effect.
        const calls = everything && kind === 'fails' ? 'all' : 'changes'
        for (let after = 0; ; after += everything ? 1 : 3) {
          const { left, struck } = await matrix.live({ of: port, kind, after, calls, byForce: after % 2 === 1 })
          if (left.length > 0) {
            leaks.push(`${struck} ${kind}: ${left.join(', ')}`)
            await matrix.stop()
            matrix = await openMatrix(each)
          }
          if (struck === undefined) break
        }
      }
      await matrix.stop()
      assert.deepEqual(leaks, [])
    })
  }
}
