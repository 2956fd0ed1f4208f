// How does a volume's capability look on the wire? Apart from `values.ts`, because only callers of drivers need the
// protocol's tables: the control plane without a driver does without them and a sixth of its memory.
import type { MessageInitShape } from '@bufbuild/protobuf'
import { VolumeCapability_AccessMode_Mode } from './generated/csi_pb.ts'
import type { VolumeCapabilitySchema } from './generated/csi_pb.ts'
import type { Capability } from './values.ts'

export function wireCapability(capability: Capability): MessageInitShape<typeof VolumeCapabilitySchema> {
  const { access, mode } = capability
  return {
    accessMode: { mode: VolumeCapability_AccessMode_Mode[mode] },
    accessType:
      access.kind === 'block'
        ? { case: 'block', value: {} }
        : {
            case: 'mount',
            value: {
              fsType: access.fsType,
              mountFlags: [...access.mountFlags],
              volumeMountGroup: access.mountGroup ?? '',
            },
          },
  }
}
