// Is SELinux seen where it is on? On the model host, with the files that kernel and policy keep; no machine here has it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { createModelHost } from './model/model-host.ts'
import { containerFileLabel, contextOf } from './selinux.ts'

const signal = new AbortController().signal

test('the policy’s own word about containers, its usual one, or none where SELinux is off (VM-12)', async () => {
  const { files } = createModelHost({ clock: createVirtualClock() })
  const write = (path: string, text: string) => files.writeFile(path, text, { mode: 0o644, parentMode: 0o755 }, signal)
  assert.equal(await containerFileLabel(files, signal), undefined)
  await write('/sys/fs/selinux/enforce', '1')
  assert.equal(await containerFileLabel(files, signal), 'system_u:object_r:container_file_t:s0')
  await write('/etc/selinux/config', '# comment\nSELINUX=enforcing\nSELINUXTYPE=mls\n')
  await write(
    '/etc/selinux/mls/contexts/lxc_contexts',
    'process = "u:r:p:s0"\nfile = "u:object_r:svirt_sandbox_file_t:s0"\n',
  )
  assert.equal(await containerFileLabel(files, signal), 'u:object_r:svirt_sandbox_file_t:s0')
})

test('the label of a mount stands among its filesystem’s options, with or without quotes (MOUNT-22)', () => {
  assert.equal(contextOf(['rw', 'context="u:r:t:s0:c1,c2"']), 'u:r:t:s0:c1,c2')
  assert.equal(contextOf(['rw', 'context=u:r:t:s0']), 'u:r:t:s0')
  assert.equal(contextOf(['rw', 'seclabel']), undefined)
})
