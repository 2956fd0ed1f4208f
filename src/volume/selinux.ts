// With which SELinux label is a volume mounted? One label per volume, from the containers that use it, where its plugin can
// mount with a context and the volume belongs to one pod alone (VM-12, MOUNT-22). Pure.
import { shortModes } from '../api/access-modes.ts'
import type { PersistentVolume, Pod, SELinuxOptions } from '../api/generated/types.ts'
import { isSinglePodWriter } from './access.ts'

/** The label of files for a process with these options: user and level are the process's, role and type the policy's. */
export function fileLabel(policyLabel: string, { user, level }: SELinuxOptions): string {
  const [policyUser = '', role = '', type = '', ...policyLevel] = policyLabel.split(':')
  return [user || policyUser, role, type, level || policyLevel.join(':')].join(':')
}

/** The labels that the pod's containers want for this volume, each once; a container without options wants none. */
export function labelsInPod(pod: Pod, volume: string, policyLabel: string): readonly string[] {
  const { containers = [], initContainers = [], ephemeralContainers = [], securityContext } = pod.spec ?? {}
  const users = [...initContainers, ...containers, ...ephemeralContainers].filter(({ volumeMounts = [] }) =>
    volumeMounts.some(({ name }) => name === volume),
  )
  const options = users.map((each) => each.securityContext?.seLinuxOptions ?? securityContext?.seLinuxOptions)
  const labels = options.filter((each) => each && Object.values(each).some(Boolean))
  return [...new Set(labels.map((each) => fileLabel(policyLabel, each!)))]
}

/** May the volume be mounted with a context at all? Its files then have one label, so one pod alone may use it. */
export function takesMountLabel(volume: PersistentVolume | undefined): boolean {
  return isSinglePodWriter(volume)
}

/** Quoted, for levels hold commas. */
export const contextOption = (label: string): string => `context="${label}"`

/** The widest of the volume's modes, in Kubernetes' short words (MEA-11). */
export function shortAccessMode(volume: PersistentVolume | undefined): string {
  if (!volume) return 'inline'
  const modes = volume.spec?.accessModes ?? []
  const widest = (['ReadWriteMany', 'ReadOnlyMany', 'ReadWriteOnce', 'ReadWriteOncePod'] as const).find((mode) =>
    modes.includes(mode),
  )
  return widest ? shortModes[widest] : ''
}
