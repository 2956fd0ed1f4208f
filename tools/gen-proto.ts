// Turns our .proto files into committed TypeScript: `node tools/gen-proto.ts` after changing a .proto.
// Uses buf as the compiler and the local protoc-gen-es as generator, so it needs no network.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import path from 'node:path'

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const protoFolders = ['src/csi/proto', 'src/store/etcd/proto']

for (const folder of protoFolders) generate(path.join(root, folder))

function generate(folder: string): void {
  const template = {
    version: 'v2',
    inputs: [{ directory: folder }],
    plugins: [
      {
        local: path.join(root, 'node_modules/.bin/protoc-gen-es'),
        out: path.join(folder, '../generated'),
        opt: ['target=ts', 'erasable_syntax=true', 'import_extension=ts'],
      },
    ],
  }
  const buf = path.join(root, 'node_modules/.bin/buf')
  const env = { ...process.env, PATH: `${path.dirname(process.execPath)}:${process.env['PATH'] ?? ''}` }
  const result = spawnSync(buf, ['generate', '--template', JSON.stringify(template)], {
    cwd: folder,
    env,
    stdio: 'inherit',
  })
  if (result.status !== 0) throw new Error(`buf generate failed in ${folder}`)
}
