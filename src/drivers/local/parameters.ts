// Which class parameters does the driver know? Any other is refused: a misspelt one would otherwise be ignored in silence.
import { fail } from '../../csi/kit/checks.ts'
import { nearWords } from '../../telemetry/near-words.ts'

export interface VolumeParameters {
  /** `thin`: space is taken when data is written. `thick`: all of it is taken when the volume is made. */
  readonly provisioning: 'thin' | 'thick'
}

const provisioningKey = 'provisioning'
const fsTypeKey = 'csi.storage.k8s.io/fstype'

export function readParameters(parameters: Readonly<Record<string, string>>): VolumeParameters {
  for (const key of Object.keys(parameters)) if (!isKnown(key)) throw fail('INVALID_ARGUMENT', unknownText(key))
  const provisioning = parameters[provisioningKey] ?? 'thin'
  if (provisioning !== 'thin' && provisioning !== 'thick')
    throw fail('INVALID_ARGUMENT', `class parameter ${provisioningKey} must be thin or thick, not "${provisioning}"`)
  return { provisioning }
}

/** Of a volume that is there; what an older version wrote is never refused. */
export const isThick = ({ parameters }: { readonly parameters: Readonly<Record<string, string>> }): boolean =>
  parameters[provisioningKey] === 'thick'

/** Provisioners hand on the old names of the filesystem and of secrets, and the names of claim and volume. */
function isKnown(key: string): boolean {
  return (
    key === provisioningKey ||
    key.toLowerCase() === 'fstype' ||
    key.startsWith('csi.storage.k8s.io/') ||
    /^csi(Provisioner|ControllerPublish|NodeStage|NodePublish)Secret(Name|Namespace)$/.test(key)
  )
}

function unknownText(key: string): string {
  const [near] = nearWords(key, [provisioningKey, 'fstype'])
  const meant = near === 'fstype' ? fsTypeKey : near
  const help = meant === undefined ? `known: ${provisioningKey}, ${fsTypeKey}` : `did you mean ${meant}?`
  return `class parameter "${key}" is not known to this driver; ${help}`
}
