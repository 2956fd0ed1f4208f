// Which protocol version do we share with a plugin, and may it take a name that is already in use? (REG-6, REG-10)
import { VolumeError } from '../../volume/effect.ts'
import { plainText } from '../answers.ts'

export type Version = readonly number[]

/** The highest version of major 1, or an error: an empty list, 0.x alone and 2.x alone are refused. */
export function highestSupported(versions: readonly string[]): Version {
  if (versions.length === 0) throw refused('CSI driver reported an empty list for supported versions')
  let highest: Version | undefined
  for (const text of versions) {
    const version = parseVersion(text)
    if ((version[0] ?? 0) > 1) continue
    if (highest === undefined || compareVersions(version, highest) > 0) highest = version
  }
  if (highest === undefined || highest[0] !== 1) {
    throw refused(`none of the CSI versions reported by this driver are supported: ${versions.join(', ')}`)
  }
  return highest
}

export function compareVersions(left: Version, right: Version): number {
  for (let part = 0; part < Math.max(left.length, right.length); part++) {
    const difference = (left[part] ?? 0) - (right[part] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

export function checkDriverName(name: string): void {
  const isSubdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name.toLowerCase())
  if (name.length > 63 || !isSubdomain) throw refused(`invalid CSI driver name ${JSON.stringify(name)}`)
}

function parseVersion(text: string): Version {
  const match = /^v?(\d+(?:\.\d+)*)/.exec(text.trim())
  if (!match?.[1]) throw refused(`could not parse CSI version ${JSON.stringify(text)}`)
  return match[1].split('.').map(Number)
}

function refused(message: string): VolumeError {
  return new VolumeError('RegistrationRefused', plainText(message), { effect: 'none' })
}
