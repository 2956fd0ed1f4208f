// Does every reason and code lead to a cause? That every reason has a row is the compiler's business; the rest is checked here.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { statusCodes } from '../../csi/codes.ts'
import { codeCauses } from './reasons.ts'

test('every CSI status but OK leads to a cause', () => {
  for (const status of Object.keys(statusCodes).filter((name) => name !== 'OK')) assert.ok(codeCauses[status], status)
})

/** Codes that never reach a user's operation, or say nothing that the operation's own cause does not. */
const withoutCause: ReadonlySet<string> = new Set([
  'AttachmentNotWritten',
  'AttachmentRemoved',
  'ClaimUnread',
  'Dangling',
  'FormatFailed',
  'GetDiskFormatFailed',
  'GroupPolicyMissing',
  'InlineVolume',
  'NoDefaultMode',
  'NoDevice',
  'NoPathDefined',
  'NoSource',
  'NodeInfoRefused',
  'NodeUnreadable',
  'NotAVolumeName',
  'NotAttachable',
  'NotMounted',
  'NotCsi',
  'ParametersInvalid',
  'PluginsInvalid',
  'ProjectedSources',
  'RegistrationFailed',
  'RegistrationRefused',
  'SizeUnknown',
  'Unexpected',
  'UnknownMountError',
  'VolumeDeleting',
  'VolumeModeMissing',
  'WrongSource',
])

test('every code of a VolumeError in the sources leads to a cause, or is listed as saying nothing', () => {
  const root = join(import.meta.dirname, '../..')
  const unknown = globSync('{controllers,csi,node,plugins,volume}/**/*.ts', { cwd: root })
    .filter((file) => !file.endsWith('.test.ts'))
    .flatMap((file) => [
      ...readFileSync(join(root, file), 'utf8').matchAll(/(?:new VolumeError|refused?|failure|passing)\(\s*'(\w+)'/g),
    ])
    .map((match) => match[1]!)
    .filter((code) => codeCauses[code] === undefined && !withoutCause.has(code))
  assert.deepEqual([...new Set(unknown)], [])
})
