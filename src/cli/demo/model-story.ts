// What can be shown without root? The real API server and controllers bind a claim; then all parts as they ship live
// on model hosts and model storage, first calmly, then through crashes and lost calls, on virtual time.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPinoLog } from '../../telemetry/pino-log.ts'
import { connect } from '../connect.ts'
import type { Connection } from '../connect.ts'
import type { Context } from '../context.ts'
import { exitCodes } from '../exit-codes.ts'
import { duration, paint } from '../output.ts'
import { waitUntil } from '../wait.ts'
import { act, phase } from './story.ts'

const seed = 7

export async function tellModelStory(context: Context): Promise<void> {
  const start = performance.now()
  const directory = mkdtempSync(join(tmpdir(), 'hawser-demo-'))
  try {
    const { startHawser } = await import('../../main/all-in-one.ts')
    act(context, 1, `API server and controllers start in ${directory}`)
    const log = createPinoLog({ level: 'error' })
    await using hawser = await startHawser(
      {
        dataDirectory: directory,
        listen: { host: '127.0.0.1', port: 0 },
        store: 'embedded',
        bare: true,
        nodes: [],
        csiDrivers: [],
        volumePluginDirectory: join(directory, 'volume-plugins'),
        leaveToSidecars: [],
        runtime: 'none',
        forceDetachOnTimeout: true,
      },
      { log },
    )
    phase(context, 'start', performance.now() - start, hawser.url)
    using connection = connect(context, { kubeconfig: hawser.kubeconfig })
    act(context, 2, 'a claim finds its volume')
    await bindClaim(context, connection)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
  act(context, 3, 'the life of a volume on two model nodes with model storage (virtual time)')
  const { liveOnModels } = await import('./model-life.ts')
  await liveOnModels(context)
  act(context, 4, 'the same with users, crashes and lost calls; then calm')
  await simulate(context)
  context.print('')
  context.print(
    paint(context, 'green', `Done in ${duration(performance.now() - start)}. The whole story: sudo hawser demo`),
  )
}

async function bindClaim(context: Context, { client, namespace }: Connection): Promise<void> {
  const start = performance.now()
  const capacity = { storage: '64Mi' }
  await client.create('PersistentVolume', {
    metadata: { name: 'by-hand' },
    spec: {
      capacity,
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: '',
      hostPath: { path: '/nonexistent' },
    },
  })
  await client.create('PersistentVolumeClaim', {
    metadata: { name: 'data', namespace },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: '', resources: { requests: capacity } },
  })
  phase(context, 'claim', performance.now() - start, 'a volume made by hand, and a claim for 64Mi')
  const asked = performance.now()
  const ref = { name: 'data', namespace }
  await waitUntil(context, client, { kind: 'PersistentVolumeClaim', ref, timeoutMs: 30_000 }, (claim) =>
    claim?.status?.phase === 'Bound'
      ? { done: true, value: undefined }
      : { done: false, waiting: 'waiting for the binding controller' },
  )
  phase(context, 'bind', performance.now() - asked, 'claim data ↔ volume by-hand')
}

async function simulate(context: Context): Promise<void> {
  const { runSimulation } = await import('../../sim/simulator.ts')
  const start = performance.now()
  const result = await runSimulation({ seed, steps: 60, nodes: 3, cast: 'real' })
  const virtual = duration(result.virtualSeconds * 1_000)
  phase(
    context,
    'simulate',
    performance.now() - start,
    `${result.lines} events in ${virtual} of virtual time, seed ${seed}`,
  )
  for (const line of result.trace.slice(-8)) context.print(`  ${paint(context, 'dim', line)}`)
  if (result.violations.length === 0) return context.print('  no rule broken, nothing left attached')
  for (const violation of result.violations) context.note(`  ${violation}`)
  context.fail(exitCodes.failed)
}
