// What can be measured about claims and volumes (MET-1 … MET-4)? Names and labels are those that dashboards know.
// Times are kept by uid, so a re-created object does not inherit them (WC-40).
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/generated/types.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import { specOfPersistentVolume } from '../../volume/spec.ts'
import { classOf } from '../../api/storage-class.ts'

export interface BindingMetrics {
  provisionStarted(claim: PersistentVolumeClaim, plugin: string): void
  deleteStarted(volume: PersistentVolume, plugin: string): void
  /** The claim is bound: the latency of its provisioning, if it was provisioned, is known. */
  claimBound(claim: PersistentVolumeClaim): void
  claimGone(claim: PersistentVolumeClaim): void
  volumeGone(volume: PersistentVolume): void
  failed(operation: 'provision' | 'delete', plugin: string): void
  retroactiveClass(outcome: 'tried' | 'failed'): void
}

export interface MetricsSources {
  readonly volumes: { readonly items: ReadonlyMap<string, PersistentVolume> }
  readonly claims: { readonly items: ReadonlyMap<string, PersistentVolumeClaim> }
  readonly plugins: Registry<ClusterPlugin>
}

export function createBindingMetrics(metrics: Metrics, clock: Clock, sources: MetricsSources): BindingMetrics {
  collectCounts(metrics, sources)
  const seconds = metrics.histogram(
    'volume_operation_total_seconds',
    'Storage operation end to end duration in seconds',
    ['plugin_name', 'operation_name'],
  )
  const errors = metrics.counter('volume_operation_errors_total', 'Total volume operation errors', [
    'plugin_name',
    'operation_name',
  ])
  const oldErrors = metrics.counter('volume_operation_total_errors', 'Total volume operation errors', [
    'plugin_name',
    'operation_name',
  ])
  const classes = metrics.counter('retroactive_storageclass_total', 'Attempts to set a default class retroactively')
  const classErrors = metrics.counter(
    'retroactive_storageclass_errors_total',
    'Failed attempts to set a default class retroactively',
  )
  const started = new Map<string, { readonly at: number; readonly plugin: string }>()
  const start = (uid: string | undefined, plugin: string) => {
    if (uid !== undefined && !started.has(uid)) started.set(uid, { at: clock.now(), plugin })
  }
  const finish = (uid: string | undefined, operation_name: string) => {
    const begun = started.get(uid ?? '')
    if (begun === undefined) return
    started.delete(uid ?? '')
    seconds.observe({ plugin_name: begun.plugin, operation_name }, (clock.now() - begun.at) / 1_000)
  }
  return {
    provisionStarted: (claim, plugin) => start(claim.metadata.uid, plugin),
    deleteStarted: (volume, plugin) => start(volume.metadata.uid, plugin),
    claimBound: (claim) => finish(claim.metadata.uid, 'provision'),
    claimGone: (claim) => void started.delete(claim.metadata.uid ?? ''),
    volumeGone: (volume) => finish(volume.metadata.uid, 'delete'),
    failed(operation_name, plugin_name) {
      errors.inc({ plugin_name, operation_name })
      oldErrors.inc({ plugin_name, operation_name })
    },
    retroactiveClass: (outcome) => (outcome === 'tried' ? classes.inc() : classErrors.inc()),
  }
}

/** MET-1: counted when somebody asks; empty series are absent. */
function collectCounts(metrics: Metrics, { volumes, claims, plugins }: MetricsSources): void {
  const perClass = (bound: boolean) => () =>
    counted(volumes.items.values(), (volume) =>
      (volume.status?.phase === 'Bound') === bound ? { storage_class: volume.spec.storageClassName ?? '' } : undefined,
    )
  const perNamespace = (bound: boolean) => () =>
    counted(claims.items.values(), (claim) =>
      (claim.status?.phase === 'Bound') === bound
        ? {
            namespace: claim.metadata.namespace ?? '',
            storage_class: classOf(claim),
            volume_attributes_class: claim.spec.volumeAttributesClassName ?? '',
          }
        : undefined,
    )
  const perPlugin = () =>
    counted(volumes.items.values(), (volume) => ({
      plugin_name: pluginLabel(plugins, volume),
      volume_mode: volume.spec.volumeMode ?? 'Filesystem',
    }))
  const claimLabels = ['namespace', 'storage_class', 'volume_attributes_class'] as const
  const gauges = [
    [
      'pv_collector_total_pv_count',
      'Gauge measuring total number of persistent volumes',
      ['plugin_name', 'volume_mode'],
      perPlugin,
    ],
    [
      'pv_collector_bound_pv_count',
      'Gauge measuring number of persistent volume currently bound',
      ['storage_class'],
      perClass(true),
    ],
    [
      'pv_collector_unbound_pv_count',
      'Gauge measuring number of persistent volume currently unbound',
      ['storage_class'],
      perClass(false),
    ],
    [
      'pv_collector_bound_pvc_count',
      'Gauge measuring number of persistent volume claim currently bound',
      claimLabels,
      perNamespace(true),
    ],
    [
      'pv_collector_unbound_pvc_count',
      'Gauge measuring number of persistent volume claim currently unbound',
      claimLabels,
      perNamespace(false),
    ],
  ] as const
  for (const [name, help, labels, count] of gauges) {
    metrics.gauge<string>(name, help, labels, (gauge) => {
      gauge.reset()
      for (const { labels: values, count: total } of count()) gauge.set(values, total)
    })
  }
}

function counted<T>(items: Iterable<T>, labelsOf: (item: T) => Record<string, string> | undefined) {
  const totals = new Map<string, { readonly labels: Record<string, string>; count: number }>()
  for (const item of items) {
    const labels = labelsOf(item)
    if (labels === undefined) continue
    totals.getOrInsertComputed(JSON.stringify(labels), () => ({ labels, count: 0 })).count++
  }
  return totals.values()
}

function pluginLabel(plugins: Registry<ClusterPlugin>, volume: PersistentVolume): string {
  const driver = volume.spec.csi?.driver
  if (driver !== undefined) return `kubernetes.io/csi:${driver}`
  try {
    return plugins.find(specOfPersistentVolume(volume, false)).name
  } catch {
    return 'N/A'
  }
}
