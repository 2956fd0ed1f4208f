// Does the real Linux host keep the port's promises? Needs root; makes mounts and loop devices under a temporary directory.

import { hostContract } from '../contracts/host.ts'
import { openPlace } from '../kit/scratch-host.ts'

hostContract('linux', async () => openPlace())
