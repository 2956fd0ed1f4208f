// Which SELinux label does a pod want for a volume, and may it have it? Conflicts are errors of the pod where the label
// would be mounted, and only counted where it would not (VM-12, MEA-11, MEA-12).
import type { PodUid } from '../../api/names.ts'
import type { Pod } from '../../api/generated/types.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { pluginLabel } from '../../volume/identity.ts'
import type { NodePlugin } from '../../volume/plugin.ts'
import type { Registered } from '../../volume/registry.ts'
import { labelsInPod, shortAccessMode, takesMountLabel } from '../../volume/selinux.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { DesiredVolume } from './desired.ts'

export interface WantedLabel {
  /** What the containers ask for; '' for nothing, or where nobody can mount it. */
  readonly asked: string
  /** What the volume is mounted with. */
  readonly mounted: string
}

export interface LabelRequest {
  readonly pod: Pod
  readonly uid: PodUid
  readonly outerName: string
  readonly spec: VolumeSpec
  readonly plugin: Registered<NodePlugin>
  /** The volume as others want it already. */
  readonly known: DesiredVolume | undefined
}

export const noLabel: WantedLabel = { asked: '', mounted: '' }

/** Throws what the pod's user must hear. `policyLabel` is undefined where SELinux is off. */
export function createLabels(
  metrics: Metrics,
): (request: LabelRequest, policyLabel: string | undefined) => WantedLabel {
  const count = createCounts(metrics)
  return ({ pod, uid, outerName, spec, plugin, known }, policyLabel) => {
    if (policyLabel === undefined) return noLabel
    const mode = shortAccessMode(spec.persistentVolume)
    const takes = takesMountLabel(spec.persistentVolume)
    const labels = labelsInPod(pod, outerName, policyLabel)
    if (labels.length > 1) {
      count.inPod(mode, takes)
      if (takes) throw new Error(`multiple SELinux labels found: ${labels.join(',')}`)
      return noLabel
    }
    const supported = plugin.plugin.seLinuxMount?.(spec) ?? false
    const recursive = pod.spec?.securityContext?.seLinuxChangePolicy === 'Recursive'
    const asked = supported && !recursive ? (labels[0] ?? '') : ''
    const where = { volume_plugin: pluginLabel(plugin.name, spec).replace(':', '/'), access_mode: mode }
    if (known && supported && !known.pods.has(uid) && known.label.asked !== asked) {
      count.betweenPods(where, takes)
      const text = `conflicting SELinux labels of volume ${spec.name}: "${known.label.asked}" and "${asked}"`
      if (takes) throw new Error(text)
    }
    if (!known && asked !== '') count.admitted(where)
    return { asked, mounted: takes ? asked : '' }
  }
}

function createCounts(metrics: Metrics) {
  const gauge = <L extends string>(name: string, help: string, labels: readonly L[]) =>
    metrics.gauge(`volume_manager_selinux_${name}_total`, help, labels)
  const modes = ['access_mode'] as const
  const where = ['volume_plugin', 'access_mode'] as const
  const pods = {
    errors: gauge('pod_context_mismatch_errors', 'Pods whose containers want different labels for one volume', modes),
    warnings: gauge('pod_context_mismatch_warnings', 'The same, where volumes are not mounted with a label', modes),
  }
  const volumes = {
    errors: gauge('volume_context_mismatch_errors', 'Pods that want a volume with another label than others', where),
    warnings: gauge('volume_context_mismatch_warnings', 'The same, where volumes are not mounted with a label', where),
  }
  const admitted = gauge('volumes_admitted', 'Volumes whose pods want them with a label', where)
  return {
    inPod: (mode: string, takes: boolean) => (takes ? pods.errors : pods.warnings).inc({ access_mode: mode }),
    betweenPods: (labels: { volume_plugin: string; access_mode: string }, takes: boolean) =>
      (takes ? volumes.errors : volumes.warnings).inc(labels),
    admitted: (labels: { volume_plugin: string; access_mode: string }) => admitted.inc(labels),
  }
}
